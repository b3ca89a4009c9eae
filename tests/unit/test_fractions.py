"""Slices: never over-committed, distinct, best fit, and refused for the right reason."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.base.errors import GpuTooSmall, InvalidOption, NoCapacity, NotEnoughGpus, OptionsConflict, SliceTooSmall, WeftError
from weft.base.ids import GpuUuid, LeaseId
from weft.base.units import GIB, MIB
from weft.model.gpu import GRANULE_BYTES, Gpu, Slice, SliceRequest
from weft.placement.fractions import Inventory, check_invariants, cut, grant, place, release


def make_gpu(ordinal: int = 0, total_bytes: int = 8 * GIB, reserve_bytes: int = 0) -> Gpu:
    return Gpu(
        ordinal=ordinal,
        name="g",
        uuid=GpuUuid(f"u{ordinal}"),
        total_bytes=total_bytes,
        compute_capability=(8, 0),
        reserve_bytes=reserve_bytes,
    )


def take(inventory: Inventory, request: SliceRequest, lease: str) -> tuple[Inventory, tuple[Slice, ...]]:
    slices = place(inventory, request)
    return grant(inventory, LeaseId(lease), slices), slices


def test_two_halves_fill_a_gpu_with_their_context_reserves() -> None:
    inventory = Inventory((make_gpu(reserve_bytes=300 * MIB),))
    inventory, (first,) = take(inventory, SliceRequest(fraction=0.5), "a")
    inventory, (second,) = take(inventory, SliceRequest(fraction=0.5), "b")
    assert first.cap_bytes == second.cap_bytes == 4 * GIB - 300 * MIB
    with pytest.raises(NoCapacity):
        place(inventory, SliceRequest(fraction=0.05))


def test_ten_tenths_fill_a_gpu() -> None:
    inventory = Inventory((make_gpu(),))
    for number in range(10):
        inventory, _ = take(inventory, SliceRequest(fraction=0.1), str(number))
        check_invariants(inventory)


def test_a_whole_gpu_needs_a_free_one() -> None:
    inventory = Inventory((make_gpu(0), make_gpu(1)))
    inventory, _ = take(inventory, SliceRequest(fraction=0.1), "a")
    inventory, (whole,) = take(inventory, SliceRequest(), "b")
    assert (whole.gpu.ordinal, whole.cap_bytes) == (1, 8 * GIB)
    with pytest.raises(NoCapacity, match=r"GPU 0 has 7\.2 GiB free of 8 GiB"):
        place(inventory, SliceRequest())


def test_the_tightest_gpu_is_taken() -> None:
    inventory = Inventory((make_gpu(0), make_gpu(1), make_gpu(2)))
    inventory, _ = take(inventory, SliceRequest(memory_bytes=3 * GIB), "a")
    inventory, (second,) = take(inventory, SliceRequest(memory_bytes=GIB), "b")
    assert second.gpu.ordinal == 0
    inventory, (third,) = take(inventory, SliceRequest(memory_bytes=5 * GIB), "c")
    assert third.gpu.ordinal == 1


def test_slices_of_one_lease_are_on_distinct_gpus() -> None:
    slices = place(Inventory((make_gpu(0), make_gpu(1))), SliceRequest(gpus=2, fraction=0.25))
    assert [part.gpu.ordinal for part in slices] == [0, 1]


def test_sizes_are_rounded_up_to_the_granule() -> None:
    part = cut(make_gpu(), SliceRequest(memory_bytes=3 * MIB))
    assert part is not None
    assert part.cap_bytes == 4 * MIB


@pytest.mark.parametrize("fraction", [0.0, -0.5, 1.0001, float("nan"), float("inf")])
def test_fractions_outside_their_range_are_refused(fraction: float) -> None:
    with pytest.raises(InvalidOption, match="-p"):
        place(Inventory((make_gpu(),)), SliceRequest(fraction=fraction))


def test_impossible_requests_name_their_reason() -> None:
    inventory = Inventory((make_gpu(),))
    cases: list[tuple[SliceRequest, type[WeftError]]] = [
        (SliceRequest(gpus=0), InvalidOption),
        (SliceRequest(memory_bytes=0), InvalidOption),
        (SliceRequest(fraction=0.5, memory_bytes=1), OptionsConflict),
        (SliceRequest(gpus=2), NotEnoughGpus),
        (SliceRequest(memory_bytes=9 * GIB), GpuTooSmall),
        (SliceRequest(fraction=1e-9), SliceTooSmall),
    ]
    for request, error in cases:
        with pytest.raises(error):
            place(inventory, request)


def test_check_invariants_notices_an_over_committed_gpu() -> None:
    gpu = make_gpu()
    whole = Slice(gpu=gpu, cap_bytes=gpu.total_bytes, footprint_bytes=gpu.total_bytes)
    twice = grant(grant(Inventory((gpu,)), LeaseId("a"), (whole,)), LeaseId("b"), (whole,))
    with pytest.raises(AssertionError, match="over-committed"):
        check_invariants(twice)


GPUS = st.lists(
    st.tuples(st.integers(1, 2048), st.integers(0, 600)).map(lambda pair: (pair[0] * 16 * MIB + 4096, pair[1] * MIB)),
    min_size=1,
    max_size=4,
)
REQUESTS = st.builds(
    lambda gpus, share, memory, kind: SliceRequest(
        gpus=gpus, fraction=share if kind == "p" else None, memory_bytes=memory if kind == "m" else None
    ),
    st.integers(1, 4),
    st.floats(0.001, 1.0),
    st.integers(1, 16 * GIB),
    st.sampled_from(["p", "m", ""]),
)


@given(GPUS, st.lists(st.tuples(REQUESTS, st.booleans()), max_size=30))
def test_whatever_is_asked_for_nothing_is_granted_twice_and_all_comes_back(
    gpus: list[tuple[int, int]], steps: list[tuple[SliceRequest, bool]]
) -> None:
    empty = Inventory(tuple(make_gpu(i, total, reserve) for i, (total, reserve) in enumerate(gpus)))
    inventory = empty
    held: list[LeaseId] = []
    for number, (request, gives_back) in enumerate(steps):
        if gives_back and held:
            inventory = release(inventory, held.pop(0))
        try:
            slices = place(inventory, request)
        except WeftError:
            continue
        assert len(slices) == request.gpus
        assert all(part.cap_bytes % GRANULE_BYTES == 0 for part in slices)
        if request.memory_bytes is not None:
            assert all(part.cap_bytes >= request.memory_bytes for part in slices)
        inventory = grant(inventory, LeaseId(str(number)), slices)
        held.append(LeaseId(str(number)))
        check_invariants(inventory)
    for lease in held:
        inventory = release(inventory, lease)
    assert inventory == empty


@given(GPUS, REQUESTS)
def test_a_decision_depends_on_the_state_alone(gpus: list[tuple[int, int]], wanted: SliceRequest) -> None:
    inventory = Inventory(tuple(make_gpu(i, total, reserve) for i, (total, reserve) in enumerate(gpus)))
    try:
        slices = place(inventory, wanted)
    except WeftError as error:
        with pytest.raises(type(error)):
            place(replace(inventory), wanted)
    else:
        assert place(replace(inventory), wanted) == slices
