"""Cuts slices out of GPUs by memory. Pure; the server is the only caller that keeps the state.

A slice takes its footprint from the device: what the program may allocate (the cap) plus one context reserve. The footprints of
a GPU never add up to more than it has, so every client can fill its slice whatever the others do. See docs/design/server.md.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from weft.base.errors import GpuTooSmall, InvalidOption, NoCapacity, NotEnoughGpus, OptionsConflict, SliceTooSmall
from weft.base.ids import LeaseId
from weft.base.units import format_bytes
from weft.model.gpu import GRANULE_BYTES, Gpu, Slice, SliceRequest

MAX_GPUS = 64


@dataclass(frozen=True)
class Inventory:
    """The server's GPUs and what is cut from them. `granted` maps a lease to its slices, which lie on distinct GPUs of `gpus`."""

    gpus: tuple[Gpu, ...]
    granted: tuple[tuple[LeaseId, tuple[Slice, ...]], ...] = ()

    def used_bytes(self, gpu: Gpu) -> int:
        return sum(part.footprint_bytes for _, slices in self.granted for part in slices if part.gpu == gpu)

    def free_bytes(self, gpu: Gpu) -> int:
        return gpu.total_bytes - self.used_bytes(gpu)


def check_request(request: SliceRequest) -> None:
    """Raises InvalidOption or OptionsConflict for what no server could ever grant."""
    if not 1 <= request.gpus <= MAX_GPUS:
        raise InvalidOption("-n", request.gpus, f"a number from 1 to {MAX_GPUS}")
    if request.fraction is not None and request.memory_bytes is not None:
        raise OptionsConflict("-p", "-m", "give the share or the size, not both")
    # Written so that NaN fails too.
    if request.fraction is not None and not 0.0 < request.fraction <= 1.0:
        raise InvalidOption("-p", f"{request.fraction:g}", "a fraction greater than 0 and at most 1")
    if request.memory_bytes is not None and request.memory_bytes < 1:
        raise InvalidOption("-m", request.memory_bytes, "a size greater than 0")


def place(inventory: Inventory, request: SliceRequest) -> tuple[Slice, ...]:
    """The slices a request gets: on distinct GPUs, best fit (least memory left over), ties by ordinal. Raises a WeftError."""
    check_request(request)
    if request.gpus > len(inventory.gpus):
        raise NotEnoughGpus(request.gpus, len(inventory.gpus))
    possible = _cut_all(inventory.gpus, request)
    fitting = [part for part in possible if part.footprint_bytes <= inventory.free_bytes(part.gpu)]
    if len(fitting) < request.gpus:
        raise NoCapacity(describe_request(request), _obstacles(inventory, possible))
    fitting.sort(key=lambda part: (inventory.free_bytes(part.gpu) - part.footprint_bytes, part.gpu.ordinal))
    return tuple(sorted(fitting[: request.gpus], key=lambda part: part.gpu.ordinal))


def grant(inventory: Inventory, lease: LeaseId, slices: tuple[Slice, ...]) -> Inventory:
    return replace(inventory, granted=(*inventory.granted, (lease, slices)))


def release(inventory: Inventory, lease: LeaseId) -> Inventory:
    """Gives a lease's slices back; a lease that is not there is no error."""
    return replace(inventory, granted=tuple(entry for entry in inventory.granted if entry[0] != lease))


def cut(gpu: Gpu, request: SliceRequest) -> Slice | None:
    """The slice of this GPU, were it free; None if the GPU is too small for it."""
    if request.memory_bytes is not None:
        cap = -(-request.memory_bytes // GRANULE_BYTES) * GRANULE_BYTES
        footprint = cap + gpu.reserve_bytes
    else:
        # Fraction of the decimal text, so that ten slices of 0.1 fill a GPU exactly.
        share = Fraction(1) if request.fraction is None else Fraction(repr(request.fraction))
        footprint = int(share * gpu.total_bytes)
        cap = (footprint - gpu.reserve_bytes) // GRANULE_BYTES * GRANULE_BYTES
    if cap < GRANULE_BYTES or footprint > gpu.total_bytes:
        return None
    return Slice(gpu=gpu, cap_bytes=cap, footprint_bytes=footprint)


def describe_request(request: SliceRequest) -> str:
    noun = "GPU" if request.gpus == 1 else "GPUs"
    if request.fraction is not None:
        return f"{request.fraction * 100:g} % of {request.gpus} {noun}"
    if request.memory_bytes is not None:
        return f"{format_bytes(request.memory_bytes)} on {request.gpus} {noun}"
    return f"{request.gpus} whole {noun}"


def check_invariants(inventory: Inventory) -> None:
    """What must hold of every inventory; for tests, and cheap enough to run after every step of the server."""
    leases = [lease for lease, _ in inventory.granted]
    assert len(leases) == len(set(leases)), "a lease is granted twice"
    for _, slices in inventory.granted:
        assert slices, "a lease without slices"
        assert len({part.gpu.ordinal for part in slices}) == len(slices), "two slices of one lease on one GPU"
        for part in slices:
            assert part.gpu in inventory.gpus, "a slice of a GPU that is not here"
            assert part.cap_bytes > 0, "an empty slice"
            assert part.cap_bytes % GRANULE_BYTES == 0, "cap is not a multiple of 2 MiB"
            assert part.cap_bytes + part.gpu.reserve_bytes <= part.footprint_bytes, "the reserve is not covered"
    for gpu in inventory.gpus:
        assert inventory.free_bytes(gpu) >= 0, "a GPU is over-committed"


def _cut_all(gpus: Iterable[Gpu], request: SliceRequest) -> list[Slice]:
    gpus = list(gpus)
    possible = [part for gpu in gpus if (part := cut(gpu, request)) is not None]
    if len(possible) >= request.gpus:
        return possible
    if request.memory_bytes is not None:
        largest = max(gpu.total_bytes - gpu.reserve_bytes for gpu in gpus)
        raise GpuTooSmall(format_bytes(request.memory_bytes), format_bytes(largest))
    raise SliceTooSmall(request.fraction or 1.0, format_bytes(GRANULE_BYTES))


def _obstacles(inventory: Inventory, possible: Sequence[Slice]) -> list[str]:
    return [
        f"GPU {part.gpu.ordinal} has {format_bytes(inventory.free_bytes(part.gpu))} free of {format_bytes(part.gpu.total_bytes)}"
        for part in possible
        if part.footprint_bytes > inventory.free_bytes(part.gpu)
    ][:8]
