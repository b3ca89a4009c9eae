"""What the server makes of a session's preamble, and its answers. Layouts are generated (weft.gen.preamble). No I/O."""

from enum import IntEnum

from weft.gen.preamble import PREAMBLE_MAGIC, PROTOCOL_OLDEST, PROTOCOL_VERSION, Preamble, PreambleReply
from weft.model.path import PathKind

SIZE = Preamble.SIZE_BYTES
TEXT_BYTES = 224
_PATHS = {0: PathKind.TCP, 1: PathKind.SHM}


class ReplyCode(IntEnum):
    ACCEPTED = 0
    VERSION = 1
    SECRET = 2
    UNAVAILABLE = 3
    MALFORMED = 4


class Refusal(Exception):
    """The session is not opened; the text goes to the client's stderr."""

    def __init__(self, code: ReplyCode, text: str) -> None:
        super().__init__(text)
        self.code = code


def check(greeting: Preamble, path: PathKind) -> None:
    """Everything about a preamble but its secret. Raises Refusal."""
    if greeting.magic != PREAMBLE_MAGIC:
        raise Refusal(ReplyCode.MALFORMED, "not a Weft client")
    if greeting.protocol_oldest > PROTOCOL_VERSION or greeting.protocol_newest < PROTOCOL_OLDEST:
        theirs = f"{greeting.protocol_oldest} to {greeting.protocol_newest}"
        ours = f"{PROTOCOL_OLDEST} to {PROTOCOL_VERSION}"
        raise Refusal(ReplyCode.VERSION, f"the client speaks session protocols {theirs}, this server {ours}")
    if _PATHS.get(greeting.path_kind) is not path:
        raise Refusal(ReplyCode.MALFORMED, f"path number {greeting.path_kind} on a socket for {path.value}")


def encode_reply(code: ReplyCode, text: str = "") -> bytes:
    line = text.encode()[: TEXT_BYTES - 1].decode(errors="ignore").encode()
    return PreambleReply(
        magic=PREAMBLE_MAGIC,
        code=code,
        protocol_oldest=PROTOCOL_OLDEST,
        protocol_newest=PROTOCOL_VERSION,
        features=0,
        text=line,
    ).encode()
