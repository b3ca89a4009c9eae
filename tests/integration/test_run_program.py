"""What `weft run` does around a program that never touches a GPU: status, signals, stdio, job control, and its own failures."""

import os
import pty
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.integration.conftest import TIMEOUT_S, WEFT, run_weft, serving
from weft.base.units import format_address

Environment = dict[str, str]


@pytest.mark.parametrize("status", [0, 1, 2, 42, 125])
def test_the_programs_status_passes_through(stub_environment: Environment, status: int) -> None:
    done = run_weft("run", "--", "sh", "-c", f"exit {status}", environ=stub_environment)
    assert (done.returncode, done.stdout, done.stderr) == (status, "", "")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGINT])
def test_a_program_killed_by_a_signal_gives_128_and_its_number(stub_environment: Environment, number: signal.Signals) -> None:
    done = run_weft("run", "--", "sh", "-c", f"kill -{number.value} $$", environ=stub_environment)
    assert (done.returncode, done.stderr) == (128 + number, "")


def test_stdio_and_arguments_pass_through_untouched(stub_environment: Environment) -> None:
    script = "import sys; sys.stdout.write(sys.stdin.read() + repr(sys.argv[1:])); sys.stderr.write('err')"
    command = [*WEFT, "run", "--", sys.executable, "-c", script, "-n", "a b", "--", "$X"]
    done = subprocess.run(
        command, env=stub_environment, input="in\n", capture_output=True, text=True, timeout=TIMEOUT_S, check=True
    )
    assert done.stdout == "in\n['-n', 'a b', '--', '$X']"
    assert done.stderr == "err"


@pytest.mark.parametrize("ignored", ["", "HUP INT QUIT"])
def test_the_program_starts_with_the_signals_it_would_have_without_weft(stub_environment: Environment, ignored: str) -> None:
    """As under nohup, or in the background of a shell: what is ignored stays ignored."""
    look = ["grep", "-E", "^Sig(Blk|Ign|Cgt)", "/proc/self/status"]

    def signals_of(*command: str) -> dict[str, int]:
        ignoring = ["env", "--default-signal", "sh", "-c", f'trap "" {ignored}; exec "$@"', "sh", *command]
        done = subprocess.run(ignoring, env=stub_environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
        return signal_sets(done.stdout)

    assert signals_of(sys.executable, "-m", "weft", "run", "--", *look) == signals_of(*look)


def signal_sets(status: str) -> dict[str, int]:
    """Of the signals up to 31: the C library keeps 32 and 33 for itself, and its posix_spawn leaves them ignored."""
    return {name: int(value, 16) & 0x7FFFFFFF for name, value in (line.split(":\t") for line in status.splitlines())}


def test_the_program_finds_the_shim_first(stub_environment: Environment, stub_native: Path) -> None:
    done = run_weft("run", "--path", "tcp", "--", "env", environ=stub_environment | {"LD_LIBRARY_PATH": "/else"})
    variables = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    assert variables["LD_LIBRARY_PATH"] == f"{stub_native}/client:/else"
    assert variables["WEFT_PATH"] == "tcp"
    assert len(variables["WEFT_SESSION_SECRET"]) == 64


def test_stats_say_which_slice_and_path_served(stub_environment: Environment) -> None:
    done = run_weft("run", "-p", "0.5", "--stats", "--", "true", environ=stub_environment)
    assert done.returncode == 0
    assert "served by 50 % of GPU 0 (Weft Software GPU, 4 GiB of 8 GiB)" in done.stderr
    assert "path shm" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["-p", "0"], 125, "-p 0: expected a fraction"),
        (["-p", "1.5"], 125, "-p 1.5: expected a fraction"),
        (["-p", "half"], 125, "-p half: expected a fraction"),
        (["-p", "0.5", "-m", "1GiB"], 125, "-p and -m exclude each other"),
        (["-n", "0"], 125, "-n 0: expected a number"),
        (["-n", "2"], 125, "2 GPUs were asked for; the server has 1 GPU"),
        (["-m", "9GiB"], 125, "9 GiB of GPU memory were asked for; the largest GPU can give 8 GiB"),
        (["-m", "lots"], 125, "-m lots: expected a size"),
        (["--path", "rdma"], 125, "rdma"),
        (["--no-such-option"], 125, "--no-such-option"),
        (["--server", "nowhere"], 125, "--server nowhere: expected host:port"),
        (["--timeout", "0"], 125, "--timeout 0.0: expected seconds"),
        (["--record", "/nonexistent/file"], 125, "/nonexistent/file"),
        (["--token-file", "/nonexistent/token", "--server", "127.0.0.1:1"], 125, "/nonexistent/token"),
    ],
)
def test_bad_options_are_one_line_and_status_125(
    stub_environment: Environment, arguments: list[str], status: int, message: str
) -> None:
    done = run_weft("run", *arguments, "--", "echo", "ran", environ=stub_environment)
    assert (done.returncode, done.stdout) == (status, "")
    first, *rest = done.stderr.splitlines()
    assert first.startswith("weft: ")
    assert message in first
    assert len(rest) <= 1, "one line and at most one hint"


@pytest.mark.parametrize(
    ("program", "status", "message"),
    [
        ("no-such-program", 127, "program not found"),
        ("/nonexistent/program", 127, "program not found"),
        ("/etc/passwd", 126, "permission denied"),
        ("/etc", 126, "it is a folder"),
    ],
)
def test_a_program_that_cannot_start_has_the_shells_status(
    stub_environment: Environment, program: str, status: int, message: str
) -> None:
    done = run_weft("run", "--", program, environ=stub_environment)
    assert done.returncode == status
    assert done.stderr.startswith(f"weft: {program}: ")
    assert message in done.stderr


def test_a_script_whose_interpreter_is_missing_cannot_be_executed(stub_environment: Environment, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/nonexistent/interpreter\n")
    script.chmod(0o755)
    done = run_weft("run", "--", str(script), environ=stub_environment)
    assert done.returncode == 126
    assert "interpreter" in done.stderr


def test_no_program_is_an_error(stub_environment: Environment) -> None:
    done = run_weft("run", "-n", "1", environ=stub_environment)
    assert (done.returncode, done.stderr.splitlines()[0]) == (125, "weft: no program was given")


def test_every_unreachable_server_is_named_with_its_reason_within_the_time_out(stub_environment: Environment) -> None:
    with closing(socket.socket()) as silent, closing(socket.socket()) as refusing:
        silent.bind(("127.0.0.1", 0))
        silent.listen(1)
        refusing.bind(("127.0.0.1", 0))
        addresses = [format_address(*sock.getsockname()) for sock in (silent, refusing)]
        servers = [argument for address in addresses for argument in ("--server", address)]
        started = time.monotonic()
        done = run_weft("run", "--timeout", "0.5", *servers, "--", "true", environ=stub_environment)
        assert time.monotonic() - started < TIMEOUT_S
    assert done.returncode == 125
    line = done.stderr.splitlines()[0]
    assert f"{addresses[0]}: no answer within 0.5 s" in line
    assert f"{addresses[1]}: Connection refused" in line


def test_a_configured_server_serves_and_a_wrong_token_does_not(stub_environment: Environment, tmp_path: Path) -> None:
    token, wrong = tmp_path / "token", tmp_path / "wrong"
    wrong.write_text("wrong\n")
    with serving("--software-gpus", "2", "--memory", "4GiB", "--token-file", str(token), environ=stub_environment) as server:
        environ = stub_environment | {"WEFT_SERVER": server.address}
        done = run_weft("run", "-n", "2", "--stats", "--token-file", str(token), "--", "echo", "hi", environ=environ)
        assert (done.returncode, done.stdout) == (0, "hi\n")
        assert f"server {server.address}" in done.stderr
        for arguments, message in (((), "asks for a token"), (("--token-file", str(wrong)), "token is wrong")):
            done = run_weft("run", *arguments, "--", "echo", "hi", environ=environ)
            assert (done.returncode, done.stdout) == (125, "")
            assert message in done.stderr.splitlines()[0]
        assert server.stop() == 0


def test_gpus_lists_what_servers_have(stub_environment: Environment) -> None:
    with serving("--software-gpus", "2", environ=stub_environment) as server:
        done = run_weft("gpus", "--server", server.address, environ=stub_environment)
        assert done.returncode == 0
        assert len(done.stdout.splitlines()) == 3
        assert (
            run_weft("gpus", "--server", server.address, "-o", "name", environ=stub_environment).stdout.count("GPU-software") == 2
        )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGINT])
def test_signals_sent_to_weft_reach_the_program_once(stub_environment: Environment, number: signal.Signals) -> None:
    script = (
        "import signal, sys\n"
        f"signal.pthread_sigmask(signal.SIG_BLOCK, [{number.value}])\n"
        "print('ready', flush=True)\n"
        f"print(signal.sigwait([{number.value}]).value, signal.sigtimedwait([{number.value}], 0.2), flush=True)\n"
        "sys.exit(9)\n"
    )
    command = [*WEFT, "run", "--", sys.executable, "-c", script]
    with subprocess.Popen(command, env=stub_environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.stdout.readline() == f"{number.value} None\n"
        assert process.wait(TIMEOUT_S) == 9


def test_an_interrupt_before_the_program_starts_ends_weft_at_once(stub_environment: Environment) -> None:
    with closing(socket.socket()) as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(1)
        address = format_address(*silent.getsockname())
        with subprocess.Popen(
            [*WEFT, "run", "--timeout", "60", "--server", address, "--", "true"], env=stub_environment
        ) as process:
            connection, _ = silent.accept()
            with connection:
                process.send_signal(signal.SIGINT)
                assert process.wait(TIMEOUT_S) == 130


@contextmanager
def terminal(command: list[str], environ: Environment) -> Iterator[tuple[int, int]]:
    """The command on a terminal of its own, as its session leader's child would be: (pid, terminal)."""
    pid, master = pty.fork()
    if pid == 0:
        os.execvpe(command[0], command, environ)
    try:
        yield pid, master
    finally:
        os.close(master)


def read_until(master: int, text: str) -> str:
    seen = ""
    while text not in seen:
        ready, _, _ = select.select([master], [], [], TIMEOUT_S)
        assert ready, f"{text!r} did not come; seen: {seen!r}"
        try:
            seen += os.read(master, 4096).decode()
        except OSError:
            raise AssertionError(f"the terminal was closed before {text!r}; seen: {seen!r}") from None
    return seen


def test_control_c_reaches_the_program_once_and_weft_waits_for_it(stub_environment: Environment) -> None:
    script = (
        "import signal, sys\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, [2])\n"
        "print('ready', flush=True)\n"
        "print('got', signal.sigwait([2]).value, signal.sigtimedwait([2], 0.2), flush=True)\n"
        "sys.exit(7)\n"
    )
    with terminal([*WEFT, "run", "--", sys.executable, "-c", script], stub_environment) as (pid, master):
        read_until(master, "ready")
        os.write(master, b"\x03")
        assert "got 2 None" in read_until(master, "None")
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7


def test_control_z_stops_weft_with_its_program_and_fg_continues_both(stub_environment: Environment) -> None:
    shell = ["bash", "--norc", "--noprofile", "-i"]
    environ = stub_environment | {"PS1": "prompt> ", "HISTFILE": ""}
    command = f'{sys.executable} -m weft run -- sh -c \'echo started; read line; echo "read $line"\'; echo "status $?"\n'
    with terminal(shell, environ) as (pid, master):
        read_until(master, "prompt> ")
        os.write(master, command.encode())
        read_until(master, "started\r\n")
        os.write(master, b"\x1a")
        read_until(master, "Stopped")
        os.write(master, b"fg\n")
        os.write(master, b"hello\n")
        read_until(master, "read hello")
        os.write(master, b"exit\n")
        os.waitpid(pid, 0)
