"""Exact reads and writes on a non-blocking socket, never reading ahead: the socket may be handed to an executor afterwards.

Also control messages on top. Nothing here knows what the messages mean.
"""

import socket

import anyio

from weft.pool import protocol


class Closed(Exception):
    """The other end closed the connection, in the middle of something or between messages."""


async def read_exactly(sock: socket.socket, size: int) -> bytes:
    """Raises Closed."""
    data = bytearray()
    while len(data) < size:
        try:
            piece = sock.recv(size - len(data))
        except BlockingIOError:
            await anyio.wait_readable(sock)
            continue
        except OSError as error:
            raise Closed(error.strerror or str(error)) from None
        if not piece:
            raise Closed("closed by the other end")
        data += piece
    return bytes(data)


async def write_all(sock: socket.socket, data: bytes) -> None:
    """Raises Closed."""
    view = memoryview(data)
    while view:
        try:
            view = view[sock.send(view, socket.MSG_NOSIGNAL) :]
        except BlockingIOError:
            await anyio.wait_writable(sock)
        except OSError as error:
            raise Closed(error.strerror or str(error)) from None


async def read_body(sock: socket.socket) -> bytes:
    """The body of the next control message. Raises Closed, ProtocolViolation."""
    length = protocol.check_length(await read_exactly(sock, protocol.LENGTH.size))
    return await read_exactly(sock, length)


async def write_message(sock: socket.socket, message: protocol.Message) -> None:
    await write_all(sock, protocol.encode(message))
