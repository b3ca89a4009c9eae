"""Executor command lines, tokens, the lease book, the error tree."""

import stat
from pathlib import Path

import anyio
import pytest

from weft.base.errors import NotEnoughGpus, ServerBusy, ServerRefusal, TokenNeeded, UnreadableFile, all_errors
from weft.base.ids import GpuUuid, SessionId
from weft.base.units import GIB
from weft.model.gpu import Gpu, SliceRequest
from weft.model.path import PathKind
from weft.placement.fractions import Inventory
from weft.pool.executors import ExecutorOrder, ExecutorSetup, executor_arguments, executor_environment
from weft.pool.leases import LeaseBook
from weft.pool.token import is_loopback, read_token, server_token

GPUS = tuple(
    Gpu(ordinal=i, name="g", uuid=GpuUuid(f"u{i}"), total_bytes=(8 + i) * GIB, compute_capability=(8, 0)) for i in range(2)
)


def test_an_executor_is_told_its_devices_and_caps_in_one_order() -> None:
    slices = LeaseBook(Inventory(GPUS), 4).grant(SliceRequest(gpus=2, fraction=0.5), "p").slices
    setup = ExecutorSetup(Path("/x/weft-executor"), "libcuda.so.1", Path("/cache"), 7, {})
    order = ExecutorOrder(SessionId("lease-1/1"), slices, usage_fd=9, usage_slot=3)
    arguments = executor_arguments(setup, order, PathKind.SHM)
    assert arguments[arguments.index("--devices") + 1] == "0,1"
    assert arguments[arguments.index("--cap-bytes") + 1] == f"{4 * GIB},{9 * GIB // 2}"
    assert arguments[arguments.index("--path") + 1] == "shm"
    assert arguments[arguments.index("--usage-slot") + 1] == "3"


def test_an_executor_inside_a_session_does_not_see_it() -> None:
    environ = {"WEFT_SESSION_SECRET": "s", "WEFT_PATH": "shm", "LD_LIBRARY_PATH": "/shim:/cuda", "HOME": "/h"}
    assert executor_environment(environ, {"A": "b"}, Path("/shim")) == {"LD_LIBRARY_PATH": "/cuda", "HOME": "/h", "A": "b"}


def test_a_missing_token_file_is_made_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "token"
    token = server_token(str(path), "0.0.0.0")
    assert token == read_token(str(path)) == server_token(str(path), "127.0.0.1")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_outside_loopback_a_token_is_needed(tmp_path: Path) -> None:
    assert server_token("", "127.0.0.1") is None
    with pytest.raises(TokenNeeded):
        server_token("", "0.0.0.0")
    with pytest.raises(UnreadableFile):
        read_token(str(tmp_path / "nothing"))


@pytest.mark.parametrize(
    ("host", "expected"), [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("h", False)]
)
def test_loopback(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


async def _open_two_sessions(book: LeaseBook) -> None:
    lease = book.grant(SliceRequest(), "p")
    entry = book.admit(lease.secret)
    assert entry is not None
    assert book.admit(b"x" * 32) is None
    session = book.open_session(entry, anyio.CancelScope())
    with pytest.raises(ServerBusy):
        book.open_session(entry, anyio.CancelScope())
    book.close(lease.lease_id)
    assert book.admit(lease.secret) is None, "a closed lease admits nobody"
    assert not entry.idle.is_set()
    book.close_session(entry, session)
    assert entry.idle.is_set()
    assert book.inventory.free_bytes(GPUS[0]) == 0, "memory is free only once the lease is forgotten"
    book.forget(lease.lease_id)
    assert book.inventory.free_bytes(GPUS[0]) == GPUS[0].total_bytes


@pytest.mark.anyio
async def test_a_lease_admits_by_secret_up_to_its_bound_and_ends_in_order() -> None:
    await _open_two_sessions(LeaseBook(Inventory(GPUS[:1]), 1))


@pytest.mark.anyio
async def test_a_further_session_pays_for_its_context_and_gives_everything_back() -> None:
    gpu = Gpu(ordinal=0, name="g", uuid=GpuUuid("u"), total_bytes=8 * GIB, compute_capability=(8, 0), reserve_bytes=300)
    book = LeaseBook(Inventory((gpu,)), 4)
    lease = book.grant(SliceRequest(), "p")
    entry = book.admit(lease.secret)
    assert entry is not None
    first = book.open_session(entry, anyio.CancelScope())
    second = book.open_session(entry, anyio.CancelScope())
    assert (first.slot, second.slot) == (0, 1)
    assert (entry.usage.read(0)[0], entry.usage.read(1)[0]) == (0, 300)
    book.close_session(entry, second)
    assert entry.usage.read(1)[0] == 0
    assert book.open_session(entry, anyio.CancelScope()).slot == 1
    entry.usage.close()


def test_error_codes_are_unique_and_survive_the_wire() -> None:
    codes = [kind.code for kind in all_errors()]
    assert len(codes) == len(set(codes))
    refusal = ServerRefusal("not_enough_gpus", "m", None, "h:1")
    assert refusal.exit_status == NotEnoughGpus.exit_status
    assert ServerRefusal("of a newer server", "m", None, "h:1").exit_status == 1
