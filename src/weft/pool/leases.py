"""Which lease holds what, in the memory of one server: the inventory, the secrets, the running sessions.

The server is the only writer. A lease's memory counts as free only after its last executor has gone.
"""

import hmac
from collections import deque
from dataclasses import dataclass, field

import anyio

from weft.base.errors import ServerBusy
from weft.base.ids import LeaseId, SessionId, new_lease_id, new_secret
from weft.model.gpu import Slice, SliceRequest
from weft.model.lease import Lease, SessionReport
from weft.placement.fractions import Inventory, check_invariants, grant, place, release
from weft.pool.usage import SLOTS, UsagePage

# Of a lease's sessions, the last ones; their reports are sent when the lease ends.
KEPT_REPORTS = 256


@dataclass(frozen=True)
class Limits:
    """Every wait and every table of the server has one."""

    handshake_s: float = 5.0
    connections: int = 512
    sessions_per_lease: int = 64
    leases_per_connection: int = 16
    push_s: float = 1.0


@dataclass(frozen=True)
class OpenSession:
    """scope: cancels the session's task, which ends its executor. slot: its row in the lease's usage page."""

    session_id: SessionId
    scope: anyio.CancelScope
    slot: int


@dataclass
class LeaseEntry:
    """sessions: those with a running executor; idle is set while there is none. closed: none may start."""

    lease: Lease
    usage: UsagePage
    sessions: dict[SessionId, OpenSession] = field(default_factory=dict)
    reports: deque[SessionReport] = field(default_factory=lambda: deque(maxlen=KEPT_REPORTS))
    idle: anyio.Event = field(default_factory=anyio.Event)
    closed: bool = False
    started: int = 0


class LeaseBook:
    def __init__(self, inventory: Inventory, max_sessions: int) -> None:
        self.inventory = inventory
        self._max_sessions = min(max_sessions, SLOTS)
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
        self._entries[lease.lease_id] = LeaseEntry(lease, UsagePage())
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

    def open_session(self, entry: LeaseEntry, scope: anyio.CancelScope) -> OpenSession:
        """The footprint holds one context's reserve; each further session is charged its own. Raises ServerBusy at the bound."""
        if len(entry.sessions) >= self._max_sessions:
            raise ServerBusy("sessions of this lease", self._max_sessions)
        entry.started += 1
        taken = {session.slot for session in entry.sessions.values()}
        slot = next(number for number in range(SLOTS) if number not in taken)
        entry.usage.charge(slot, [part.gpu.reserve_bytes for part in entry.lease.slices] if taken else [])
        if not entry.sessions:
            entry.idle = anyio.Event()
        session = OpenSession(SessionId(f"{entry.lease.lease_id}/{entry.started}"), scope, slot)
        entry.sessions[session.session_id] = session
        return session

    def close_session(self, entry: LeaseEntry, session: OpenSession) -> None:
        """After the session's executor has gone."""
        entry.usage.charge(session.slot, [])
        del entry.sessions[session.session_id]
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
        if entry is None:
            return
        assert not entry.sessions, "a lease is forgotten while executors run"
        entry.usage.close()
        self._set_inventory(release(self.inventory, lease_id))

    def _set_inventory(self, inventory: Inventory) -> None:
        check_invariants(inventory)
        self.inventory = inventory
