"""Starts, watches and ends `weft-executor` processes: one per session, each with its socket as an inherited descriptor.

Descriptors of an executor: 0 /dev/null, 1 and 2 its log (a pipe to the server), 3 status lines (JSON), 4 the lease's usage page,
5 the session's socket.
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

STATUS_FD, USAGE_FD, SOCKET_FD = 3, 4, 5
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


@dataclass(frozen=True)
class ExecutorOrder:
    """What one executor is for. usage_fd: page of the lease (weft.pool.usage), of which it writes row usage_slot."""

    session: SessionId
    slices: tuple[Slice, ...]
    usage_fd: int
    usage_slot: int


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


def start_executor(setup: ExecutorSetup, order: ExecutorOrder, path: PathKind, sock: socket.socket, log: EventLog) -> Executor:
    """Raises OSError when the process cannot be made. The caller closes its copy of the socket."""
    status_read, status_write = os.pipe2(os.O_CLOEXEC)
    log_read, log_write = os.pipe2(os.O_CLOEXEC)
    wanted = {1: log_write, 2: log_write, STATUS_FD: status_write, USAGE_FD: order.usage_fd, SOCKET_FD: sock.fileno()}
    # Copies out of the way of the numbers they are duplicated to.
    sources = {target: fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 16) for target, fd in wanted.items()}
    actions: list[tuple[int, ...] | tuple[int, int, str, int, int]] = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
    actions += [(os.POSIX_SPAWN_DUP2, source, target) for target, source in sources.items()]
    try:
        pid = os.posix_spawn(
            setup.program,
            executor_arguments(setup, order, path),
            setup.environ,
            file_actions=actions,
            setpgroup=0,
            setsigmask=(),
            setsigdef=_DEFAULT_SIGNALS,
        )
    except OSError:
        os.close(status_read)
        os.close(log_read)
        raise
    finally:
        for fd in (status_write, log_write, *sources.values()):
            os.close(fd)
    for fd in (status_read, log_read):
        os.set_blocking(fd, False)
    return Executor(pid, order.session, status_read, log_read, log)


def executor_arguments(setup: ExecutorSetup, order: ExecutorOrder, path: PathKind) -> list[str]:
    """The program sees the devices as 0, 1, ... in this order, and as large as their caps."""
    return [
        str(setup.program),
        "--fd", str(SOCKET_FD),
        "--status-fd", str(STATUS_FD),
        "--usage-fd", str(USAGE_FD),
        "--usage-slot", str(order.usage_slot),
        "--path", path.value,
        "--driver", setup.driver,
        "--devices", ",".join(str(part.gpu.ordinal) for part in order.slices),
        "--cap-bytes", ",".join(str(part.cap_bytes) for part in order.slices),
        "--cache-dir", str(setup.cache_dir),
        "--cache-bytes", str(setup.cache_bytes),
        "--session-name", order.session,
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
