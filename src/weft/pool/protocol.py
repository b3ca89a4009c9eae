"""The control protocol between `weft run` and a server: messages as types, and how they are framed. No I/O.

A connection starts with the eight bytes MAGIC, then both ends send messages: u32 length (little-endian), then JSON. The first
message is Hello. Grammar and a worked example: docs/design/server.md.
"""

import struct

import msgspec

from weft.base.errors import ProtocolViolation, ServerRefusal, WeftError
from weft.model.gpu import Gpu, Slice, SliceRequest
from weft.model.lease import SessionReport

MAGIC = b"WEFTCTL1"
PROTOCOL = 1
OLDEST_PROTOCOL = 1
LENGTH = struct.Struct("<I")
MAX_MESSAGE_BYTES = 64 * 1024


class Message(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """Base of all messages. Unknown fields are ignored, so that a newer end can add some."""


class Hello(Message, frozen=True, tag="hello"):
    protocol: int
    version: str
    token: str | None = None


class Welcome(Message, frozen=True, tag="welcome"):
    """socket_name: the server's abstract Unix socket, without the leading NUL; None if it has none."""

    protocol: int
    version: str
    boot_id: str
    socket_name: str | None = None


class Refused(Message, frozen=True, tag="refused"):
    """The request before it was not granted. `code` is stable, the text is for people."""

    code: str
    message: str
    hint: str | None = None


class LeaseRequest(Message, frozen=True, tag="lease_request"):
    request: SliceRequest
    program: str = ""


class LeaseGranted(Message, frozen=True, tag="lease_granted"):
    """secret: 64 hex digits that admit sessions. The lease ends with this connection."""

    lease_id: str
    secret: str
    slices: tuple[Slice, ...]


class Release(Message, frozen=True, tag="release"):
    lease_id: str


class Released(Message, frozen=True, tag="released"):
    """Answers Release after the last executor of the lease has gone; all reports came before."""

    lease_id: str


class SessionEnded(Message, frozen=True, tag="session_ended"):
    """Pushed at any time while the lease lives."""

    lease_id: str
    report: SessionReport


class InfoRequest(Message, frozen=True, tag="info_request"):
    pass


class GpuStatus(msgspec.Struct, frozen=True, kw_only=True):
    gpu: Gpu
    free_bytes: int
    leases: int


class Info(Message, frozen=True, tag="info"):
    version: str
    driver: str
    gpus: tuple[GpuStatus, ...]
    sessions: int


ClientMessage = Hello | LeaseRequest | Release | InfoRequest
ServerMessage = Welcome | Refused | LeaseGranted | Released | SessionEnded | Info

_encoder = msgspec.json.Encoder()
_client_decoder: msgspec.json.Decoder[ClientMessage] = msgspec.json.Decoder(ClientMessage)
_server_decoder: msgspec.json.Decoder[ServerMessage] = msgspec.json.Decoder(ServerMessage)


def encode(message: Message) -> bytes:
    """The message with its length in front."""
    body = _encoder.encode(message)
    if len(body) > MAX_MESSAGE_BYTES:
        raise ProtocolViolation(f"a message of {len(body)} bytes is longer than {MAX_MESSAGE_BYTES}")
    return LENGTH.pack(len(body)) + body


def check_length(header: bytes) -> int:
    """The body's length that a 4-byte header announces. Raises ProtocolViolation when out of bounds."""
    (length,) = LENGTH.unpack(header)
    if not 2 <= length <= MAX_MESSAGE_BYTES:
        raise ProtocolViolation(f"a message of {length} bytes was announced; the limit is {MAX_MESSAGE_BYTES}")
    return int(length)


def decode_client_message(body: bytes) -> ClientMessage:
    try:
        return _client_decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ProtocolViolation(str(error)) from None


def decode_server_message(body: bytes) -> ServerMessage:
    try:
        return _server_decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ProtocolViolation(str(error)) from None


def refuse(error: WeftError) -> Refused:
    return Refused(code=error.code, message=error.message, hint=error.hint)


def refusal_error(refused: Refused, server: str) -> ServerRefusal:
    return ServerRefusal(refused.code, refused.message, refused.hint, server)
