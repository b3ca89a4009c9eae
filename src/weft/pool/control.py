"""One control connection on the server's side: hello, then requests until it closes. Its leases end with it."""

import hmac
import socket
from typing import Protocol, assert_never

import anyio

from weft.base.errors import ProtocolViolation, ServerBusy, VersionMismatch, WeftError, WrongToken
from weft.base.ids import LeaseId
from weft.base.log import EventLog
from weft.model.gpu import SliceRequest
from weft.model.lease import Lease, SessionReport
from weft.pool import protocol
from weft.pool.leases import LeaseBook, Limits
from weft.pool.stream import read_body, write_message


class LeaseServer(Protocol):
    """What a control connection needs of its server."""

    version: str
    driver: str
    token: str | None
    boot_id: str
    socket_name: str | None
    limits: Limits
    log: EventLog
    book: LeaseBook

    def grant_lease(self, request: SliceRequest, program: str) -> Lease: ...
    async def end_lease(self, lease_id: LeaseId) -> tuple[SessionReport, ...]: ...


async def serve_control(server: LeaseServer, sock: socket.socket) -> None:
    """Raises Closed when the client goes, TimeoutError when its hello does not come."""
    leases: list[LeaseId] = []
    try:
        with anyio.fail_after(server.limits.handshake_s):
            await _greet(server, sock)
        while True:
            message = protocol.decode_client_message(await read_body(sock))
            await _answer(server, sock, message, leases)
    except WeftError as error:
        server.log.warning("control_refused", code=error.code, reason=error.message)
        with anyio.move_on_after(server.limits.push_s):
            await write_message(sock, protocol.refuse(error))
            sock.shutdown(socket.SHUT_WR)
    finally:
        for lease_id in leases:
            await server.end_lease(lease_id)


async def _greet(server: LeaseServer, sock: socket.socket) -> None:
    hello = protocol.decode_client_message(await read_body(sock))
    if not isinstance(hello, protocol.Hello):
        raise ProtocolViolation("the first message was not hello")
    if not protocol.OLDEST_PROTOCOL <= hello.protocol <= protocol.PROTOCOL:
        raise VersionMismatch(hello.version, server.version, hello.protocol, (protocol.OLDEST_PROTOCOL, protocol.PROTOCOL))
    if server.token is not None and not hmac.compare_digest(server.token.encode(), (hello.token or "").encode()):
        raise WrongToken(given=bool(hello.token))
    welcome = protocol.Welcome(
        protocol=protocol.PROTOCOL, version=server.version, boot_id=server.boot_id, socket_name=server.socket_name
    )
    await write_message(sock, welcome)


async def _answer(server: LeaseServer, sock: socket.socket, message: protocol.ClientMessage, leases: list[LeaseId]) -> None:
    match message:
        case protocol.LeaseRequest():
            await write_message(sock, _grant(server, message, leases))
        case protocol.Release():
            await _release(server, sock, LeaseId(message.lease_id), leases)
        case protocol.InfoRequest():
            await write_message(sock, describe_server(server))
        case protocol.Hello():
            raise ProtocolViolation("a second hello")
        case _:
            assert_never(message)


def _grant(server: LeaseServer, message: protocol.LeaseRequest, leases: list[LeaseId]) -> protocol.Message:
    """A refusal here leaves the connection open: the client may ask for something else."""
    try:
        if len(leases) >= server.limits.leases_per_connection:
            raise ServerBusy("leases of this connection", server.limits.leases_per_connection)
        lease = server.grant_lease(message.request, message.program)
    except WeftError as error:
        server.log.info("lease_refused", code=error.code, reason=error.message)
        return protocol.refuse(error)
    leases.append(lease.lease_id)
    return protocol.LeaseGranted(lease_id=lease.lease_id, secret=lease.secret.hex(), slices=lease.slices)


async def _release(server: LeaseServer, sock: socket.socket, lease_id: LeaseId, leases: list[LeaseId]) -> None:
    if lease_id not in leases:
        raise ProtocolViolation("release of a lease that this connection does not hold")
    for report in await server.end_lease(lease_id):
        await write_message(sock, protocol.SessionEnded(lease_id=lease_id, report=report))
    leases.remove(lease_id)
    await write_message(sock, protocol.Released(lease_id=lease_id))


def describe_server(server: LeaseServer) -> protocol.Info:
    inventory = server.book.inventory
    gpus = tuple(
        protocol.GpuStatus(
            gpu=gpu,
            free_bytes=inventory.free_bytes(gpu),
            leases=sum(any(part.gpu == gpu for part in slices) for _, slices in inventory.granted),
        )
        for gpu in inventory.gpus
    )
    return protocol.Info(version=server.version, driver=server.driver, gpus=gpus, sessions=server.book.session_count)
