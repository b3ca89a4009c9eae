"""Faults around a running session: who is killed, who notices, how soon, and that nothing is left behind."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.integration.conftest import PROGRAMS, ROOT, TIMEOUT_S, WEFT, run_weft, serving
from tests.integration.networks import FAR_ADDRESS, two_networks

Environment = dict[str, str]
DEVICE_UNAVAILABLE = "46"
WITHIN_S = 5.0

pytestmark = pytest.mark.usefixtures("native_parts")


@pytest.fixture(params=["shm", "tcp"])
def path(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@contextlib.contextmanager
def calling(environ: Environment, *arguments: str, prefix: Sequence[str] = ()) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A program under `weft run` that calls for ever; ready when the context begins. Yields weft's process, the program's pid."""
    command = [*prefix, *WEFT, "run", "--timeout", "3", *arguments, "--", sys.executable, "-m", f"{PROGRAMS}.call_for_ever"]
    with subprocess.Popen(command, env=environ, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            ready = process.stdout.readline().split()
            assert ready[:1] == ["ready"], process.stderr.read() if process.stderr else ready
            yield process, int(ready[1])
        finally:
            process.kill()
            process.communicate()


def expect_failure(process: subprocess.Popen[str]) -> str:
    """The program's calls return an error in time, again and again, and it ends by itself. Returns what Weft said."""
    out, err = process.communicate(timeout=TIMEOUT_S)
    failed, again = out.splitlines()
    word, code, seconds = failed.split()
    assert (word, code) == ("failed", DEVICE_UNAVAILABLE), err
    assert float(seconds) < WITHIN_S
    assert again == f"again {DEVICE_UNAVAILABLE}"
    assert process.returncode == 0
    return err


def executors_of(pid: int) -> list[int]:
    """Process ids of the executors that this process started."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text().rsplit(")", 1)
                if int(fields[1].split()[1]) == pid and "weft-executor" in fields[0]:
                    found.append(int(entry.name))
    return found


def wait_until_gone(pids: list[int], limit_s: float) -> None:
    deadline = time.monotonic() + limit_s
    left = list(pids)
    while left and time.monotonic() < deadline:
        left = [pid for pid in left if Path(f"/proc/{pid}").exists()]
        time.sleep(0.01)
    assert not left, f"executors {left} are still there after {limit_s} s"


def test_a_killed_executor_is_an_error_in_the_program(environment: Environment, path: str) -> None:
    with calling(environment, "--path", path) as (process, _):
        (executor,) = executors_of(process.pid)
        os.kill(executor, signal.SIGKILL)
        assert "weft: " in expect_failure(process)


def test_a_killed_server_is_an_error_in_the_program_and_leaves_no_executor(environment: Environment, path: str) -> None:
    with (
        serving("--software-gpus", "1", environ=environment) as server,
        calling(environment, "--server", server.address, "--path", path) as (process, _),
    ):
        executors = executors_of(server.process.pid)
        assert len(executors) == 1
        server.process.kill()
        wait_until_gone(executors, TIMEOUT_S)
        expect_failure(process)


def test_a_stopped_server_ends_its_sessions_and_exits_with_0(environment: Environment, path: str) -> None:
    with (
        serving("--software-gpus", "1", environ=environment) as server,
        calling(environment, "--server", server.address, "--path", path) as (process, _),
    ):
        assert server.stop() == 0
        expect_failure(process)


@pytest.mark.parametrize("victim", ["program", "weft"])
def test_a_killed_client_frees_its_slice(environment: Environment, path: str, victim: str) -> None:
    with serving("--software-gpus", "1", environ=environment) as server:
        with calling(environment, "--server", server.address, "--path", path) as (process, program):
            executors = executors_of(server.process.pid)
            if victim == "program":
                os.kill(program, signal.SIGKILL)
                assert process.wait(TIMEOUT_S) == 137
            else:
                process.kill()
            wait_until_gone(executors, TIMEOUT_S)
            with contextlib.suppress(ProcessLookupError):
                os.kill(program, signal.SIGKILL)
        done = run_weft("run", "--server", server.address, "--", sys.executable, "-m", f"{PROGRAMS}.add_one", environ=environment)
        assert (done.returncode, done.stdout) == (0, "768\n"), done.stderr


def test_an_out_of_memory_program_goes_on_and_others_notice_nothing(environment: Environment) -> None:
    with (
        serving("--software-gpus", "1", "--memory", "1GiB", environ=environment) as server,
        calling(environment, "--server", server.address, "-p", "0.5") as (process, _),
    ):
        arguments = ("run", "--server", server.address, "-p", "0.5", "--")
        done = run_weft(*arguments, sys.executable, "-m", f"{PROGRAMS}.exhaust", environ=environment)
        assert (done.returncode, done.stdout) == (0, "512 512 42\n"), done.stderr
        assert process.poll() is None


def test_a_cut_network_is_an_error_in_the_program_within_the_time_out(environment: Environment, tmp_path: Path) -> None:
    token = str(tmp_path / "token")
    with two_networks() as cable:
        listen = ("--listen", f"{FAR_ADDRESS}:0", "--token-file", token)
        with serving("--software-gpus", "1", *listen, environ=environment, prefix=cable.far) as server:
            arguments = ("--server", server.address, "--token-file", token)
            with calling(environment, *arguments, prefix=cable.near) as (process, _):
                cable.cut()
                expect_failure(process)


def test_many_runs_leave_nothing_behind(environment: Environment) -> None:
    """The long version with 2,000 cycles is a benchmark."""
    with serving("--software-gpus", "1", environ=environment) as server:
        counts = []
        for _ in range(3):
            done = run_weft(
                "run", "--server", server.address, "--", sys.executable, "-m", f"{PROGRAMS}.add_one", environ=environment
            )
            assert done.stdout == "768\n", done.stderr
            assert executors_of(server.process.pid) == []
            counts.append(held_by(server.process.pid))
        assert len(set(counts)) == 1, counts


def held_by(pid: int) -> int:
    """Open descriptors of a process."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def test_a_client_that_dies_in_a_host_function_releases_its_stream(environment: Environment, path: str) -> None:
    with serving("--software-gpus", "1", environ=environment) as server:
        run = ("run", "--server", server.address, "--path", path, "--", sys.executable, "-m")
        dead = run_weft(*run, f"{PROGRAMS}.dies_in_callback", environ=environment)
        assert dead.returncode == 128 + signal.SIGKILL, dead.stderr
        wait_until_gone(executors_of(server.process.pid), WITHIN_S)
        done = run_weft(*run, f"{PROGRAMS}.add_one", environ=environment)
        assert (done.returncode, done.stdout) == (0, "768\n"), done.stderr
