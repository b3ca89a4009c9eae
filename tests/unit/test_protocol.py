"""Control messages: round trips, bounds, and what a stranger may send."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.base.errors import NoCapacity, ProtocolViolation
from weft.base.ids import GpuUuid
from weft.gen.preamble import PREAMBLE_MAGIC, Preamble, PreambleReply
from weft.model.gpu import Gpu, Slice, SliceRequest
from weft.model.path import PathKind
from weft.pool import preamble, protocol

GPU = Gpu(ordinal=0, name="g", uuid=GpuUuid("u"), total_bytes=1 << 33, compute_capability=(8, 0))


def body(message: protocol.Message) -> bytes:
    data = protocol.encode(message)
    assert protocol.check_length(data[:4]) == len(data) - 4
    return data[4:]


def test_client_messages_read_back() -> None:
    messages: list[protocol.ClientMessage] = [
        protocol.Hello(protocol=1, version="0.1.0", token="secret"),
        protocol.LeaseRequest(request=SliceRequest(gpus=2, fraction=0.5), program="python"),
        protocol.Release(lease_id="lease-1"),
        protocol.InfoRequest(),
    ]
    for message in messages:
        assert protocol.decode_client_message(body(message)) == message


def test_server_messages_read_back() -> None:
    part = Slice(gpu=GPU, cap_bytes=1 << 32, footprint_bytes=1 << 32)
    messages: list[protocol.ServerMessage] = [
        protocol.Welcome(protocol=1, version="0.1.0", boot_id="b", socket_name="weft-1"),
        protocol.LeaseGranted(lease_id="l", secret="00" * 32, slices=(part,)),
        protocol.Released(lease_id="l"),
        protocol.refuse(NoCapacity("1 whole GPU", ["GPU 0 is in use"])),
    ]
    for message in messages:
        assert protocol.decode_server_message(body(message)) == message


def test_a_newer_end_may_add_fields() -> None:
    hello = protocol.decode_client_message(b'{"kind":"hello","protocol":1,"version":"9","colour":"red"}')
    assert isinstance(hello, protocol.Hello)


@given(st.binary(max_size=200))
def test_random_bytes_are_refused_not_crashed_on(data: bytes) -> None:
    for decode in (protocol.decode_client_message, protocol.decode_server_message):
        with pytest.raises(ProtocolViolation):
            decode(data)


@pytest.mark.parametrize("length", [0, 1, protocol.MAX_MESSAGE_BYTES + 1, 0xFFFFFFFF])
def test_lengths_out_of_bounds_are_refused(length: int) -> None:
    with pytest.raises(ProtocolViolation):
        protocol.check_length(length.to_bytes(4, "little"))


def greeting(**changes: object) -> Preamble:
    values: dict[str, object] = {
        "magic": PREAMBLE_MAGIC, "protocol_oldest": 1, "protocol_newest": 1, "features": 0,
        "secret": b"s" * 32, "process_id": 7, "path_kind": 1,
    }  # fmt: skip
    return Preamble(**(values | changes))  # type: ignore[arg-type]


def test_a_preamble_reads_back() -> None:
    assert Preamble.decode(greeting().encode()) == greeting()
    assert len(greeting().encode()) == preamble.SIZE


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"magic": b"GET / HT"}, preamble.ReplyCode.MALFORMED),
        ({"protocol_oldest": 99, "protocol_newest": 100}, preamble.ReplyCode.VERSION),
        ({"protocol_newest": 0}, preamble.ReplyCode.VERSION),
        ({"path_kind": 0}, preamble.ReplyCode.MALFORMED),
        ({"path_kind": 7}, preamble.ReplyCode.MALFORMED),
    ],
)
def test_a_wrong_preamble_is_refused_with_its_code(changes: dict[str, object], code: preamble.ReplyCode) -> None:
    preamble.check(greeting(), PathKind.SHM)
    with pytest.raises(preamble.Refusal) as refusal:
        preamble.check(greeting(**changes), PathKind.SHM)
    assert refusal.value.code is code


def test_a_reply_holds_one_line_of_bounded_length() -> None:
    reply = PreambleReply.decode(preamble.encode_reply(preamble.ReplyCode.SECRET, "ä" * 500))
    text = reply.text.rstrip(b"\0")
    assert reply.code == 2
    assert len(text) < preamble.TEXT_BYTES
    assert set(text.decode()) == {"ä"}
