"""Runs the program as a shell would: same process group, terminal, descriptors; waits for it and passes signals on.

The program must see each signal once. Signals from the terminal reach it directly (it is in our process group), so only those
sent to us by a process are forwarded. When job control stops the program we stop too, so that the shell gets the terminal back.
"""

import errno
import os
import shutil
import signal
from collections.abc import Iterable, Mapping, Sequence

from weft.base.errors import ProgramNotExecutable, ProgramNotFound
from weft.session.signals import HANDLED, Arrived, SignalPipe

FORWARDED = HANDLED - {signal.SIGCHLD}
JOB_CONTROL_STOPS = frozenset({signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU})
# Python ignores these two from its start; a program expects the default.
RESET = (signal.SIGPIPE, signal.SIGXFSZ)


def find_program(name: str) -> None:
    """Raises ProgramNotFound or ProgramNotExecutable, so that a typing error costs no lease."""
    if shutil.which(name) is not None:
        return
    candidates = [name] if os.path.dirname(name) else [os.path.join(folder, name) for folder in os.get_exec_path()]
    for path in candidates:
        if os.path.isdir(path) and os.path.dirname(name):
            raise ProgramNotExecutable(name, "it is a folder")
        if os.path.isfile(path):
            raise ProgramNotExecutable(name, "permission denied")
    raise ProgramNotFound(name)


async def run_program(command: Sequence[str], environ: Mapping[str, str], signals: SignalPipe) -> int:
    """The status a shell would show: the program's own, or 128+n after signal n. Raises ProgramNotFound, ProgramNotExecutable."""
    pid = start_program(command, environ, signals.original_mask)
    while True:
        done, status = os.waitpid(pid, os.WNOHANG | os.WUNTRACED)
        if done and not os.WIFSTOPPED(status):
            return exit_status(status)
        if done:
            if os.WSTOPSIG(status) in JOB_CONTROL_STOPS:
                os.kill(os.getpid(), signal.SIGSTOP)
            continue
        arrived = await signals.receive()
        if should_forward(arrived, pid):
            os.kill(pid, arrived.number)


def start_program(command: Sequence[str], environ: Mapping[str, str], mask: Iterable[int]) -> int:
    try:
        return os.posix_spawnp(command[0], list(command), dict(environ), setsigmask=mask, setsigdef=RESET)
    except FileNotFoundError:
        if shutil.which(command[0]) is not None:
            raise ProgramNotExecutable(command[0], "the interpreter in its first line does not exist") from None
        raise ProgramNotFound(command[0]) from None
    except OSError as error:
        reason = "unknown format, and no interpreter line" if error.errno == errno.ENOEXEC else error.strerror or str(error)
        raise ProgramNotExecutable(command[0], reason) from None


def should_forward(arrived: Arrived, program_pid: int) -> bool:
    """Signals of the kernel (Ctrl-C, Ctrl-Z, hang-up) reach the program by themselves; its own to the group are not sent back."""
    return arrived.number in FORWARDED and arrived.from_process and arrived.sender_pid != program_pid


def exit_status(wait_status: int) -> int:
    code = os.waitstatus_to_exitcode(wait_status)
    return code if code >= 0 else 128 - code
