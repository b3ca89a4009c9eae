"""Which lease holds what, in the memory of one server: the inventory, the secrets, the running sessions. No I/O.

The server is the only writer. A lease's memory counts as free only after its last executor has gone.
"""

import hmac
from dataclasses import dataclass, field

import anyio

from weft.base.errors import ServerBusy
from weft.base.ids import LeaseId, SessionId, new_lease_id, new_secret
from weft.model.gpu import Slice, SliceRequest
from weft.model.lease import Lease, SessionReport
from weft.placement.fractions import Inventory, check_invariants, grant, place, release


@dataclass(frozen=True)
class Limits:
    """Every wait and every table of the server has one."""

    handshake_s: float = 5.0
    connections: int = 512
    sessions_per_lease: int = 64
    leases_per_connection: int = 16
    push_s: float = 1.0


@dataclass
class LeaseEntry:
    """sessions: the cancel scope of each running executor; idle is set while there is none. closed: none may start."""

    lease: Lease
    sessions: dict[SessionId, anyio.CancelScope] = field(default_factory=dict)
    reports: list[SessionReport] = field(default_factory=list)
    idle: anyio.Event = field(default_factory=anyio.Event)
    closed: bool = False
    started: int = 0


class LeaseBook:
    def __init__(self, inventory: Inventory, max_sessions: int) -> None:
        self.inventory = inventory
        self._max_sessions = max_sessions
        self._entries: dict[LeaseId, LeaseEntry] = {}

    @property
    def session_count(self) -> int:
        return sum(len(entry.sessions) for entry in self._entries.values())

    def lease_ids(self) -> tuple[LeaseId, ...]:
        return tuple(self._entries)

    def grant(self, request: SliceRequest, program: str) -> Lease:
        """Raises a WeftError that says why the request cannot be granted."""
        slices: tuple[Slice, ...] = place(self.inventory, request)
        lease = Lease(lease_id=new_lease_id(), secret=new_secret(), slices=slices, program=program)
        self._set_inventory(grant(self.inventory, lease.lease_id, slices))
        self._entries[lease.lease_id] = LeaseEntry(lease)
        return lease

    def find(self, lease_id: LeaseId) -> LeaseEntry | None:
        return self._entries.get(lease_id)

    def admit(self, secret: bytes) -> LeaseEntry | None:
        """The open lease with this secret. Takes the same time for every wrong secret."""
        found = None
        for entry in self._entries.values():
            if hmac.compare_digest(entry.lease.secret, secret):
                found = entry
        return found if found is not None and not found.closed else None

    def open_session(self, entry: LeaseEntry, scope: anyio.CancelScope) -> SessionId:
        """Raises ServerBusy when the lease has as many sessions as it may have."""
        if len(entry.sessions) >= self._max_sessions:
            raise ServerBusy("sessions of this lease", self._max_sessions)
        entry.started += 1
        session = SessionId(f"{entry.lease.lease_id}/{entry.started}")
        if not entry.sessions:
            entry.idle = anyio.Event()
        entry.sessions[session] = scope
        return session

    def close_session(self, entry: LeaseEntry, session: SessionId) -> None:
        del entry.sessions[session]
        if not entry.sessions:
            entry.idle.set()

    def close(self, lease_id: LeaseId) -> LeaseEntry | None:
        """No new sessions from here on; the caller waits until the entry is idle, then calls forget."""
        entry = self._entries.get(lease_id)
        if entry is None:
            return None
        entry.closed = True
        if not entry.sessions:
            entry.idle.set()
        return entry

    def forget(self, lease_id: LeaseId) -> None:
        entry = self._entries.pop(lease_id, None)
        assert entry is None or not entry.sessions, "a lease is forgotten while executors run"
        self._set_inventory(release(self.inventory, lease_id))

    def _set_inventory(self, inventory: Inventory) -> None:
        check_invariants(inventory)
        self.inventory = inventory
