"""Starts, watches and ends `weft-executor` processes: one per session, each with its socket as an inherited descriptor.

Descriptors of an executor: 0 /dev/null, 1 and 2 its log (a pipe to the server), 3 status lines (JSON), 5 the session's socket.
An executor gets a process group of its own, so that Ctrl-C at a terminal reaches the program and not the executor.
"""

import fcntl
import os
import signal
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import anyio
import msgspec

from weft.base.ids import SessionId
from weft.base.log import EventLog
from weft.model.gpu import Slice
from weft.model.lease import SessionReport
from weft.model.path import PathKind

STATUS_FD, SOCKET_FD = 3, 5
STOP_TIMEOUT_S = 0.5
MAX_LINE_BYTES = 64 * 1024
# What a program of `weft run` gets; an executor started from inside such a program must not see it.
SESSION_VARIABLES = (
    "WEFT_SERVER_ADDRESS", "WEFT_SERVER_SOCKET", "WEFT_PATH", "WEFT_SESSION_SECRET", "WEFT_STATS", "WEFT_TRACE", "WEFT_RECORD",
)  # fmt: skip


class StatusLine(msgspec.Struct, frozen=True):
    """One line on descriptor 3. The last one has event `ended`."""

    event: str
    reason: str = ""
    counters: dict[str, int] = {}


@dataclass(frozen=True)
class ExecutorSetup:
    """What all executors of a server have in common."""

    program: Path
    driver: str
    cache_dir: Path
    cache_bytes: int
    environ: Mapping[str, str]


class Executor:
    """A running executor. The task that made it calls run() and nothing else."""

    def __init__(self, pid: int, session: SessionId, status_fd: int, log_fd: int, log: EventLog) -> None:
        self.pid = pid
        self._pidfd = os.pidfd_open(pid)
        self._session = session
        self._status_fd = status_fd
        self._log_fd = log_fd
        self._log = log
        self._last = StatusLine(event="ended")
        self._status = 0

    async def run(self) -> None:
        """Returns when the process has gone. Cancelled: ends it first (SIGTERM, then SIGKILL after STOP_TIMEOUT_S)."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._read_status)
                tasks.start_soon(self._read_log)
                await anyio.wait_readable(self._pidfd)
                # The pipes end with the process; what is in them is still read, for a bounded time.
                tasks.cancel_scope.deadline = anyio.current_time() + STOP_TIMEOUT_S
        finally:
            with anyio.CancelScope(shield=True):
                await self._stop()

    def report(self) -> SessionReport:
        """What the executor told last; after run()."""
        reason = self._last.reason or "closed"
        if self._status < 0:
            reason = f"executor killed by {signal.Signals(-self._status).name}"
        elif self._status > 0:
            reason = f"executor exit status {self._status}: {self._last.reason}".rstrip(": ")
        return SessionReport(session=self._session, reason=reason, counters=self._last.counters)

    async def _stop(self) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, number)
            with anyio.move_on_after(STOP_TIMEOUT_S):
                await anyio.wait_readable(self._pidfd)
                break
        _, status = os.waitpid(self.pid, 0)
        for fd in (self._pidfd, self._status_fd, self._log_fd):
            os.close(fd)
        self._status = os.waitstatus_to_exitcode(status)

    async def _read_status(self) -> None:
        async for line in _lines(self._status_fd):
            try:
                self._last = msgspec.json.decode(line, type=StatusLine)
            except msgspec.DecodeError:
                self._log.warning("executor_status_unreadable", session=self._session, line=line[:200].decode(errors="replace"))

    async def _read_log(self) -> None:
        async for line in _lines(self._log_fd):
            self._log.info("executor_log", session=self._session, line=line.decode(errors="replace"))


def start_executor(
    setup: ExecutorSetup, session: SessionId, slices: tuple[Slice, ...], path: PathKind, sock: socket.socket, log: EventLog
) -> Executor:
    """Raises OSError when the process cannot be made. The caller closes its copy of the socket."""
    arguments = executor_arguments(setup, session, slices, path)
    status_read, status_write = os.pipe2(os.O_CLOEXEC)
    log_read, log_write = os.pipe2(os.O_CLOEXEC)
    # Out of the way of the numbers they are duplicated to.
    sources = [_move_up(fd) for fd in (status_write, log_write)] + [_move_up(os.dup(sock.fileno()))]
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, sources[1], 1),
        (os.POSIX_SPAWN_DUP2, sources[1], 2),
        (os.POSIX_SPAWN_DUP2, sources[0], STATUS_FD),
        (os.POSIX_SPAWN_DUP2, sources[2], SOCKET_FD),
    ]
    try:
        pid = os.posix_spawn(
            setup.program, arguments, setup.environ, file_actions=actions, setpgroup=0, setsigmask=(), setsigdef=_DEFAULT_SIGNALS
        )
    except OSError:
        os.close(status_read)
        os.close(log_read)
        raise
    finally:
        for fd in sources:
            os.close(fd)
    for fd in (status_read, log_read):
        os.set_blocking(fd, False)
    return Executor(pid, session, status_read, log_read, log)


def executor_arguments(setup: ExecutorSetup, session: SessionId, slices: tuple[Slice, ...], path: PathKind) -> list[str]:
    """The program sees the devices as 0, 1, ... in this order. One cap stands for all of them if they are equal."""
    caps = [part.cap_bytes for part in slices]
    return [
        str(setup.program),
        "--fd", str(SOCKET_FD),
        "--status-fd", str(STATUS_FD),
        "--path", path.value,
        "--driver", setup.driver,
        "--devices", ",".join(str(part.gpu.ordinal) for part in slices),
        "--cap-bytes", ",".join(map(str, caps[:1] if len(set(caps)) == 1 else caps)),
        "--cache-dir", str(setup.cache_dir),
        "--cache-bytes", str(setup.cache_bytes),
        "--session-name", session,
    ]  # fmt: skip


def executor_environment(environ: Mapping[str, str], extra: Mapping[str, str], shim_dir: Path) -> dict[str, str]:
    """The server's own environment without anything that belongs to a program of `weft run`, plus `extra`."""
    result = {name: value for name, value in environ.items() if name not in SESSION_VARIABLES}
    folders = [folder for folder in result.get("LD_LIBRARY_PATH", "").split(":") if folder and folder != str(shim_dir)]
    result.pop("LD_LIBRARY_PATH", None)
    if folders:
        result["LD_LIBRARY_PATH"] = ":".join(folders)
    return result | dict(extra)


_DEFAULT_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGQUIT, signal.SIGTSTP, signal.SIGCHLD)


def _move_up(fd: int) -> int:
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 16)
    os.close(fd)
    return moved


async def _lines(fd: int) -> AsyncIterator[bytes]:
    """Lines of a non-blocking pipe until it ends; longer ones are cut."""
    pending = b""
    while True:
        try:
            piece = os.read(fd, 16 * 1024)
        except BlockingIOError:
            await anyio.wait_readable(fd)
            continue
        if not piece:
            break
        *lines, pending = (pending + piece).split(b"\n")
        for line in lines:
            yield line
        pending = pending[:MAX_LINE_BYTES]
    if pending:
        yield pending
