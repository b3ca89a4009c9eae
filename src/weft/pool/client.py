"""The client's end of a control connection: connect, say hello, hold a lease. Every wait has the caller's time-out."""

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass

import anyio

from weft.base.errors import ProtocolViolation, Unreachable, WeftError
from weft.base.units import parse_address
from weft.model.gpu import SliceRequest
from weft.model.lease import SessionReport
from weft.pool import protocol
from weft.pool.host import tune_tcp
from weft.pool.stream import Closed, read_body, write_all, write_message


@dataclass
class ControlConnection:
    """One server that said welcome. One task at a time may use it."""

    address: str
    sock: socket.socket
    welcome: protocol.Welcome

    async def lease(self, request: SliceRequest, program: str) -> protocol.LeaseGranted:
        """Raises ServerRefusal when the server says no."""
        await write_message(self.sock, protocol.LeaseRequest(request=request, program=program))
        answer = await self._receive()
        if not isinstance(answer, protocol.LeaseGranted):
            raise ProtocolViolation(f"a lease request was answered with {type(answer).__name__}")
        return answer

    async def release(self, lease_id: str) -> tuple[SessionReport, ...]:
        """Ends the lease; returns what its sessions did once their executors have gone."""
        await write_message(self.sock, protocol.Release(lease_id=lease_id))
        reports: list[SessionReport] = []
        while True:
            answer = await self._receive()
            if isinstance(answer, protocol.Released):
                return tuple(reports)
            if isinstance(answer, protocol.SessionEnded):
                reports.append(answer.report)

    async def info(self) -> protocol.Info:
        await write_message(self.sock, protocol.InfoRequest())
        answer = await self._receive()
        if not isinstance(answer, protocol.Info):
            raise ProtocolViolation(f"an info request was answered with {type(answer).__name__}")
        return answer

    def close(self) -> None:
        self.sock.close()

    async def _receive(self) -> protocol.ServerMessage:
        answer = protocol.decode_server_message(await read_body(self.sock))
        if isinstance(answer, protocol.Refused):
            raise protocol.refusal_error(answer, self.address)
        return answer


async def connect(address: str, version: str, token: str | None, timeout_s: float) -> ControlConnection:
    """Raises Unreachable with one attempt, or the server's refusal."""
    try:
        with anyio.fail_after(timeout_s):
            return await _connect(address, version, token)
    except TimeoutError:
        raise Unreachable([(address, f"no answer within {timeout_s:g} s")]) from None
    except Closed as closed:
        raise Unreachable([(address, f"it closed the connection ({closed})")]) from None
    except OSError as error:
        raise Unreachable([(address, error.strerror or str(error))]) from None


async def connect_all(
    addresses: Sequence[str], version: str, token: str | None, timeout_s: float
) -> tuple[list[ControlConnection], list[WeftError]]:
    """All at once, so that the whole takes one time-out at most. The connections in the order of the addresses."""
    results: list[ControlConnection | WeftError | None] = [None] * len(addresses)

    async def attempt(index: int, address: str) -> None:
        try:
            results[index] = await connect(address, version, token, timeout_s)
        except WeftError as error:
            results[index] = error

    async with anyio.create_task_group() as tasks:
        for index, address in enumerate(addresses):
            tasks.start_soon(attempt, index, address)
    connections = [result for result in results if isinstance(result, ControlConnection)]
    return connections, [result for result in results if isinstance(result, WeftError)]


def combine_failures(failures: Sequence[WeftError]) -> WeftError:
    """One error for several attempts; a single refusal stays itself."""
    if len(failures) == 1:
        return failures[0]
    attempts: list[tuple[str, str]] = []
    for failure in failures:
        attempts += failure.attempts if isinstance(failure, Unreachable) else [("refused", failure.message)]
    return Unreachable(attempts)


async def _connect(address: str, version: str, token: str | None) -> ControlConnection:
    host, port = parse_address(address)
    sock = await _open(host, port)
    try:
        tune_tcp(sock)
        hello = protocol.Hello(protocol=protocol.PROTOCOL, version=version, token=token)
        await write_all(sock, protocol.MAGIC + protocol.encode(hello))
        answer = protocol.decode_server_message(await read_body(sock))
        if isinstance(answer, protocol.Refused):
            raise protocol.refusal_error(answer, address)
        if not isinstance(answer, protocol.Welcome):
            raise ProtocolViolation(f"hello was answered with {type(answer).__name__}")
        return ControlConnection(address, sock, answer)
    except BaseException:
        sock.close()
        raise


async def _open(host: str, port: int) -> socket.socket:
    """A connected non-blocking socket. Raises OSError of the last address tried."""
    failure: OSError = OSError("no address")
    for family, _, _, _, address in await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            try:
                sock.connect(address)
            except BlockingIOError:
                await anyio.wait_writable(sock)
                if error_number := sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                    raise OSError(error_number, os.strerror(error_number)) from None
            return sock
        except OSError as error:
            failure = error
            sock.close()
        except BaseException:
            sock.close()
            raise
    raise failure
