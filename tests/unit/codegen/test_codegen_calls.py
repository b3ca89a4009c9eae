"""What a record of spec/cuda/calls.toml becomes, on both ends, and which records are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codegen import executor_dispatch, shim_entries
from codegen.calls import Call, frame_of, parse_calls
from codegen.records import SpecError, load_abi

GOLDEN = Path(__file__).parent / "golden"

# One call of each shape: custom, asynchronous in a stream, asynchronous in the default stream, waiting.
RECORDS: dict[str, dict[str, Any]] = {
    "cuMemAlloc": {"class": "custom", "priority": "P0", "args": {"dptr": "out"}},
    "cuMemsetD16Async": {
        "class": "async", "priority": "P2", "opcode": 300, "check": ["dstDevice % 2 == 0"], "skip": "N == 0",
        "args": {"dstDevice": "device[times(N, 2)]"},
    },
    "cuMemsetD8": {
        "class": "async", "priority": "P1", "opcode": 301, "driver": "cuMemsetD8Async", "stream": "default",
        "args": {"dstDevice": "device[N]"},
    },
    "cuOccupancyMaxActiveClusters": {
        "class": "wait", "priority": "P2", "opcode": 302, "args": {"numClusters": "out", "config": "launch_config"},
    },
}  # fmt: skip


def calls_of(records: dict[str, dict[str, Any]]) -> tuple[Call, ...]:
    return parse_calls(load_abi(), records)


@pytest.mark.parametrize("name", ["shim_entries.txt", "executor_dispatch.txt"])
def test_generated_code_is_as_expected(name: str) -> None:
    calls = calls_of(RECORDS)
    text = shim_entries.render_entries(calls) if name == "shim_entries.txt" else executor_dispatch.render(load_abi(), calls)
    # Left out: the constant head. To accept a wanted change, write `text` from here on to the file.
    start = "CUresult serve_" if name == "shim_entries.txt" else "Status run_"
    assert text[text.index(start) :] == (GOLDEN / name).read_text()


def test_old_symbols_with_the_same_types_and_per_thread_variants_are_served_too() -> None:
    call = calls_of({"cuCtxDestroy": {"class": "custom", "priority": "P0"}})[0]
    assert [s.symbol for s in call.implementations[0].served] == ["cuCtxDestroy_v2", "cuCtxDestroy"]
    call = calls_of({"cuStreamSynchronize": {"class": "custom", "priority": "P0"}})[0]
    served = {s.symbol: s.per_thread for s in call.implementations[0].served}
    assert served == {"cuStreamSynchronize": False, "cuStreamSynchronize_ptsz": True}


def test_32_bit_symbols_are_never_served_by_newer_ones() -> None:
    call = calls_of({"cuMemAlloc": RECORDS["cuMemAlloc"]})[0]
    assert [s.symbol for s in call.implementations[0].served] == ["cuMemAlloc_v2"]


def test_fields_need_no_padding() -> None:
    call = calls_of({"cuMemsetD16Async": RECORDS["cuMemsetD16Async"]})[0]
    frame = frame_of(load_abi(), call)
    fields = [(field.name, field.type, field.offset) for field in frame.fields]
    assert fields == [("dstDevice", "u64", 0), ("N", "u64", 8), ("stream", "u32", 16), ("us", "u32", 20)]
    assert frame.stream_offset == 24 + 16


ASYNC: dict[str, Any] = {"class": "async", "priority": "P1", "opcode": 300, "args": {"dstDevice": "device[N]"}}


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ({"cuNoSuchCall": {"class": "local", "priority": "P0"}}, "no such driver call"),
        ({"cuInit": {"class": "quick", "priority": "P0"}}, "class or priority"),
        ({"cuInit": {"class": "local", "priority": "P0", "speed": 1}}, "unknown keys"),
        ({"cuDeviceGet": {"class": "local", "priority": "P0"}}, "say in args what the pointer device is"),
        ({"cuInit": {"class": "local", "priority": "P0", "args": {"flugs": "out"}}}, "no such parameter: flugs"),
        ({"cuDeviceGet": {"class": "local", "priority": "P0", "args": {"device": "maybe"}}}, "unknown kind maybe"),
        ({"cuMemsetD8": {key: value for key, value in ASYNC.items() if key != "opcode"}}, "needs an opcode"),
        ({"cuMemsetD8": {**ASYNC, "opcode": 12}}, "from 256"),
        ({"cuInit": {"class": "local", "priority": "P0", "skip": "Flags == 0"}}, "need an opcode"),
        ({"cuInit": {"class": "local", "priority": "P0", "symbols": ["cuInit_v9"]}}, "unknown symbol cuInit_v9"),
    ],
)
def test_records_that_cannot_be_meant_are_refused(records: dict[str, dict[str, Any]], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        calls_of(records)


def test_a_call_whose_arguments_do_not_fit_a_frame_is_refused() -> None:
    args = {"dstHost": "out[ByteCount]", "srcDevice": "device[ByteCount]"}
    call = calls_of({"cuMemcpyDtoH": {"class": "wait", "priority": "P0", "opcode": 300, "args": args}})[0]
    with pytest.raises(SpecError, match="make the call custom"):
        frame_of(load_abi(), call)
