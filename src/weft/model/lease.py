"""A lease: slices granted to one `weft run` for as long as its control connection lives, and what its sessions did."""

import msgspec

from weft.base.ids import LeaseId
from weft.model.gpu import Slice


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """The secret admits sessions; whoever knows it may use the slices."""

    lease_id: LeaseId
    secret: bytes
    slices: tuple[Slice, ...]
    program: str = ""


class SessionReport(msgspec.Struct, frozen=True, kw_only=True):
    """What one executor told when its session ended; counters are named by the executor."""

    session: str
    reason: str
    counters: dict[str, int] = {}
