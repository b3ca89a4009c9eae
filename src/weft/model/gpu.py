"""GPUs and the slices cut from them."""

from typing import NewType

import msgspec

from weft.base.ids import GpuUuid

# Driver memory is mapped in pieces of this size; caps are multiples of it.
GRANULE_BYTES = 2 << 20

Ordinal = NewType("Ordinal", int)


class Gpu(msgspec.Struct, frozen=True, kw_only=True):
    """One device as a driver shows it to its server."""

    ordinal: int
    name: str
    uuid: GpuUuid
    total_bytes: int
    compute_capability: tuple[int, int]
    # What one executor's context costs on this device before the program allocates anything.
    reserve_bytes: int = 0


class SliceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """`gpus` distinct devices, of each a fraction or a size; with neither, whole ones."""

    gpus: int = 1
    fraction: float | None = None
    memory_bytes: int | None = None


class Slice(msgspec.Struct, frozen=True, kw_only=True):
    """A part of one GPU. footprint_bytes is what it takes from the device: the cap and the context reserve."""

    gpu: Gpu
    cap_bytes: int
    footprint_bytes: int

    @property
    def share(self) -> float:
        return self.footprint_bytes / self.gpu.total_bytes
