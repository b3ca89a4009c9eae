"""The GPU server: listeners, and one task per connection. Control connections hold leases; sessions become executors.

The same class is `weft serve` and the embedded server of `weft run`. States, bounds and fault cases: docs/design/server.md.
"""

import socket
from contextlib import suppress
from dataclasses import dataclass

import anyio
import anyio.abc

from weft.base.errors import ListenFailed, WeftError
from weft.base.ids import LeaseId, new_socket_name
from weft.base.log import EventLog
from weft.base.units import format_address, format_bytes
from weft.gen.preamble import PREAMBLE_MAGIC, Preamble
from weft.model.gpu import SliceRequest
from weft.model.lease import Lease, SessionReport
from weft.model.path import PathKind
from weft.placement.fractions import Inventory
from weft.pool import preamble, protocol
from weft.pool.control import serve_control
from weft.pool.executors import ExecutorOrder, ExecutorSetup, start_executor
from weft.pool.host import abstract_address, boot_id, tune_tcp
from weft.pool.leases import LeaseBook, LeaseEntry, Limits, OpenSession
from weft.pool.preamble import ReplyCode
from weft.pool.stream import Closed, read_exactly, write_all

BACKLOG = 128
FIRST_BYTES = 8


@dataclass(frozen=True)
class Listeners:
    """tcp serves control and sessions; local (an abstract Unix socket) serves sessions over shared memory."""

    tcp: socket.socket
    local: socket.socket
    socket_name: str

    @property
    def address(self) -> str:
        host, port = self.tcp.getsockname()[:2]
        return format_address(host, port)

    def close(self) -> None:
        self.tcp.close()
        self.local.close()


def open_listeners(host: str, port: int) -> Listeners:
    """Raises ListenFailed."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        tcp = socket.socket(family, socket.SOCK_STREAM)
        tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        tcp.bind(address)
        tcp.listen(BACKLOG)
    except OSError as error:
        raise ListenFailed(format_address(host, port), error.strerror or str(error)) from None
    name = new_socket_name()
    local = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    local.bind(abstract_address(name))
    local.listen(BACKLOG)
    tcp.setblocking(False)
    local.setblocking(False)
    return Listeners(tcp, local, name)


class GpuServer:
    """All methods belong to one event loop. token None: no token is asked for."""

    def __init__(
        self,
        inventory: Inventory,
        setup: ExecutorSetup,
        *,
        version: str,
        driver: str,
        token: str | None,
        limits: Limits,
        log: EventLog,
    ) -> None:
        self.book = LeaseBook(inventory, limits.sessions_per_lease)
        self.version = version
        self.driver = driver
        self.token = token
        self.limits = limits
        self.log = log
        self.boot_id = boot_id()
        self.socket_name: str | None = None
        self._setup = setup
        self._connections = 0

    async def serve(self, listeners: Listeners, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Runs until cancelled; then every executor is ended before this returns."""
        self.socket_name = listeners.socket_name
        self._setup.cache_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            async with anyio.create_task_group() as tasks:
                for listener in (listeners.tcp, listeners.local):
                    tasks.start_soon(self._accept, listener, tasks)
                task_status.started()
        finally:
            listeners.close()

    def grant_lease(self, request: SliceRequest, program: str) -> Lease:
        """Raises a WeftError."""
        lease = self.book.grant(request, program)
        parts = [f"{format_bytes(part.cap_bytes)} of GPU {part.gpu.ordinal}" for part in lease.slices]
        self.log.info("lease_granted", lease=lease.lease_id, slices=", ".join(parts), program=program)
        return lease

    async def end_lease(self, lease_id: LeaseId) -> tuple[SessionReport, ...]:
        """Ends the lease's executors (at most about 1 s) and gives its memory back. Must not be interrupted half way."""
        entry = self.book.close(lease_id)
        if entry is None:
            return ()
        with anyio.CancelScope(shield=True):
            for session in entry.sessions.values():
                session.scope.cancel()
            await entry.idle.wait()
            self.book.forget(lease_id)
        self.log.info("lease_ended", lease=lease_id, sessions=entry.started)
        return tuple(entry.reports)

    async def _accept(self, listener: socket.socket, tasks: anyio.abc.TaskGroup) -> None:
        is_local = listener.family == socket.AF_UNIX
        while True:
            await anyio.wait_readable(listener)
            try:
                sock, _ = listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                continue
            except OSError as error:  # out of descriptors: wait for some to be closed
                self.log.warning("accept_failed", reason=error.strerror)
                await anyio.sleep(0.1)
                continue
            if self._connections >= self.limits.connections:
                self.log.warning("connection_refused", reason="too many connections", limit=self.limits.connections)
                sock.close()
                continue
            self._connections += 1
            tasks.start_soon(self._serve_connection, sock, is_local)

    async def _serve_connection(self, sock: socket.socket, is_local: bool) -> None:
        with sock:
            try:
                sock.setblocking(False)
                if not is_local:
                    tune_tcp(sock)
                with anyio.fail_after(self.limits.handshake_s):
                    first = await read_exactly(sock, FIRST_BYTES)
                if first == protocol.MAGIC:
                    await serve_control(self, sock)
                elif first == PREAMBLE_MAGIC:
                    await self._serve_session(sock, first, PathKind.SHM if is_local else PathKind.TCP)
                else:
                    self.log.warning("connection_refused", reason="neither control nor session", first=first.hex())
            except TimeoutError:
                self.log.warning("connection_refused", reason="no complete handshake in time", limit_s=self.limits.handshake_s)
            except Closed as closed:
                self.log.debug("connection_closed", reason=str(closed))
            except OSError as error:
                self.log.warning("connection_failed", reason=error.strerror or str(error))
            finally:
                self._connections -= 1

    async def _serve_session(self, sock: socket.socket, first: bytes, path: PathKind) -> None:
        with anyio.fail_after(self.limits.handshake_s):
            greeting = Preamble.decode(first + await read_exactly(sock, preamble.SIZE - FIRST_BYTES))
        scope = anyio.CancelScope()
        try:
            entry, session = self._admit(greeting, path, scope)
        except preamble.Refusal as refusal:
            await self._refuse_session(sock, refusal)
            return
        try:
            with scope:
                # Answered before the executor starts: from then on only the executor writes to this socket.
                await write_all(sock, preamble.encode_reply(ReplyCode.ACCEPTED))
                await self._run_session(entry, session, greeting.process_id, path, sock)
        finally:
            self.book.close_session(entry, session)

    async def _run_session(
        self, entry: LeaseEntry, opened: OpenSession, client_pid: int, path: PathKind, sock: socket.socket
    ) -> None:
        session = opened.session_id
        order = ExecutorOrder(session, entry.lease.slices, entry.usage.fd, opened.slot)
        sock.setblocking(True)  # the executor gets it as it would from accept()
        executor = start_executor(self._setup, order, path, sock, self.log)
        sock.close()
        self.log.info("session_opened", session=session, path=path.value, client_pid=client_pid, executor_pid=executor.pid)
        try:
            await executor.run()
        finally:
            report = executor.report()
            entry.reports.append(report)
            self.log.info("session_closed", session=session, reason=report.reason, **report.counters)

    def _admit(self, greeting: Preamble, path: PathKind, scope: anyio.CancelScope) -> tuple[LeaseEntry, OpenSession]:
        """Raises preamble.Refusal."""
        preamble.check(greeting, path)
        entry = self.book.admit(greeting.secret)
        if entry is None:
            raise preamble.Refusal(ReplyCode.SECRET, "no lease has this secret; it has ended, or another server granted it")
        try:
            return entry, self.book.open_session(entry, scope)
        except WeftError as error:
            raise preamble.Refusal(ReplyCode.UNAVAILABLE, error.message) from None

    async def _refuse_session(self, sock: socket.socket, refusal: preamble.Refusal) -> None:
        self.log.warning("session_refused", code=refusal.code.name.lower(), reason=str(refusal))
        with suppress(Closed), anyio.move_on_after(self.limits.push_s):
            await write_all(sock, preamble.encode_reply(refusal.code, str(refusal)))
            sock.shutdown(socket.SHUT_WR)
