"""The server's side of the two protocols, in one process with the test, with a stub in place of the native executor."""

import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest

from weft.base.errors import ServerRefusal
from weft.base.log import NullLog
from weft.base.units import parse_address
from weft.gen.preamble import PREAMBLE_MAGIC, Preamble, PreambleReply
from weft.model.gpu import SliceRequest
from weft.pool import preamble, protocol
from weft.pool.client import ControlConnection, connect
from weft.pool.inventory import software_supply
from weft.pool.leases import Limits
from weft.pool.server import GpuServer, Listeners, open_listeners
from weft.pool.stream import Closed, read_body, read_exactly, write_all

pytestmark = pytest.mark.anyio
WAIT_S = 10


@dataclass
class Running:
    """A server in this event loop; everything dialled through it is closed with it."""

    server: GpuServer
    listeners: Listeners
    stack: ExitStack

    def dial(self, local: bool = False) -> socket.socket:
        sock = self.stack.enter_context(socket.socket(socket.AF_UNIX if local else socket.AF_INET))
        sock.connect("\0" + self.listeners.socket_name if local else parse_address(self.listeners.address))
        sock.setblocking(False)
        return sock

    async def open_session(self, secret: str, local: bool = True) -> tuple[socket.socket, PreambleReply]:
        sock = self.dial(local)
        return sock, await greet(sock, greeting(bytes.fromhex(secret), path_kind=int(local)))

    async def connect(self, token: str | None = None) -> ControlConnection:
        connection = await connect(self.listeners.address, "test", token, WAIT_S)
        self.stack.callback(connection.close)
        return connection

    async def lease_all(self) -> tuple[ControlConnection, protocol.LeaseGranted]:
        connection = await self.connect()
        return connection, await connection.lease(SliceRequest(gpus=2), "p")

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():  # noqa: ASYNC110  the server is not made for being watched
            await anyio.sleep(0.005)


@asynccontextmanager
async def running_server(
    stub_native: Path, tmp_path: Path, token: str | None = None, limits: Limits | None = None
) -> AsyncIterator[Running]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WEFT_NATIVE_DIR", str(stub_native))
        supply = software_supply(2, "8GiB", "8.0", tmp_path / "cache", 1 << 30, dict(os.environ))
    server = GpuServer(
        supply.inventory, supply.setup, version="test", driver="stub", token=token, limits=limits or Limits(), log=NullLog()
    )
    listeners = open_listeners("127.0.0.1", 0)
    with ExitStack() as stack:
        async with anyio.create_task_group() as tasks:
            await tasks.start(server.serve, listeners)
            with anyio.fail_after(WAIT_S):
                yield Running(server, listeners, stack)
            tasks.cancel_scope.cancel()


def greeting(secret: bytes, protocol_oldest: int = 1, protocol_newest: int = 1, path_kind: int = 0) -> Preamble:
    return Preamble(PREAMBLE_MAGIC, protocol_oldest, protocol_newest, 0, secret, os.getpid(), path_kind)


async def greet(sock: socket.socket, message: Preamble) -> PreambleReply:
    await write_all(sock, message.encode())
    return PreambleReply.decode(await read_exactly(sock, PreambleReply.SIZE_BYTES))


async def expect_end(sock: socket.socket) -> None:
    """Reads until the other end closes."""
    try:
        while True:
            await read_exactly(sock, 1)
    except Closed:
        return


@pytest.mark.parametrize("local", [True, False])
async def test_a_session_gets_an_executor_and_its_report_comes_back(stub_native: Path, tmp_path: Path, local: bool) -> None:
    async with running_server(stub_native, tmp_path) as running:
        connection, granted = await running.lease_all()
        sock, reply = await running.open_session(granted.secret, local)
        assert reply.code == 0
        assert (await connection.info()).sessions == 1
        sock.close()
        await running.until(lambda: running.server.book.session_count == 0)
        reports = await connection.release(granted.lease_id)
        assert [(report.reason, report.counters) for report in reports] == [("stub", {"frames": 3})]


async def test_a_lease_ends_with_its_control_connection_and_takes_its_executors_along(stub_native: Path, tmp_path: Path) -> None:
    async with running_server(stub_native, tmp_path) as running:
        connection, granted = await running.lease_all()
        sock, _ = await running.open_session(granted.secret)
        connection.close()
        await expect_end(sock)
        await running.until(lambda: not running.server.book.lease_ids())
        inventory = running.server.book.inventory
        assert inventory.free_bytes(inventory.gpus[0]) == 8 << 30
        _, reply = await running.open_session(granted.secret)
        assert reply.code == preamble.ReplyCode.SECRET


async def test_a_full_server_refuses_and_the_connection_stays_usable(stub_native: Path, tmp_path: Path) -> None:
    async with running_server(stub_native, tmp_path) as running:
        connection, granted = await running.lease_all()
        other = await running.connect()
        with pytest.raises(ServerRefusal, match="no room for 50 % of 1 GPU") as refusal:
            await other.lease(SliceRequest(fraction=0.5), "p")
        assert refusal.value.server_code == "no_capacity"
        await connection.release(granted.lease_id)
        assert (await other.lease(SliceRequest(fraction=0.5), "p")).slices[0].cap_bytes == 4 << 30


@pytest.mark.parametrize(("token", "message"), [(None, "asks for a token"), ("wrong", "token is wrong")])
async def test_a_wrong_token_is_refused(stub_native: Path, tmp_path: Path, token: str | None, message: str) -> None:
    async with running_server(stub_native, tmp_path, token="right") as running:
        with pytest.raises(ServerRefusal, match=message) as refusal:
            await running.connect(token)
        assert refusal.value.exit_status == 7
        await running.connect("right")


async def test_another_version_is_refused_with_both_versions(stub_native: Path, tmp_path: Path) -> None:
    async with running_server(stub_native, tmp_path) as running:
        sock = running.dial()
        await write_all(sock, protocol.MAGIC + protocol.encode(protocol.Hello(protocol=99, version="9.9")))
        answer = protocol.decode_server_message(await read_body(sock))
        assert isinstance(answer, protocol.Refused)
        assert answer.code == "version_mismatch"
        assert "9.9" in answer.message
        assert "test" in answer.message


async def test_wrong_secret_wrong_protocol_and_wrong_path_are_told_apart(stub_native: Path, tmp_path: Path) -> None:
    async with running_server(stub_native, tmp_path) as running:
        _, granted = await running.lease_all()
        secret = bytes.fromhex(granted.secret)
        for message, code in (
            (greeting(b"x" * 32), preamble.ReplyCode.SECRET),
            (greeting(secret, protocol_oldest=7, protocol_newest=9), preamble.ReplyCode.VERSION),
            (greeting(secret, path_kind=1), preamble.ReplyCode.MALFORMED),
        ):
            assert (await greet(running.dial(), message)).code == code


async def test_strangers_and_the_silent_are_cut_off_without_harm(stub_native: Path, tmp_path: Path) -> None:
    openings = (b"GET / HTTP/1.1\r\n\r\n", b"", protocol.MAGIC, protocol.MAGIC + b"\xff" * 4, PREAMBLE_MAGIC + b"\0" * 9)
    async with running_server(stub_native, tmp_path, limits=Limits(handshake_s=0.05)) as running:
        for opening in openings:
            sock = running.dial()
            await write_all(sock, opening)
            await expect_end(sock)
        assert (await (await running.connect()).info()).sessions == 0


async def test_connections_and_sessions_are_bounded(stub_native: Path, tmp_path: Path) -> None:
    limits = Limits(connections=3, sessions_per_lease=1)
    async with running_server(stub_native, tmp_path, limits=limits) as running:
        _, granted = await running.lease_all()
        _, reply = await running.open_session(granted.secret)
        assert reply.code == 0
        second, reply = await running.open_session(granted.secret)
        assert reply.code == preamble.ReplyCode.UNAVAILABLE
        await expect_end(second)
        await running.connect()
        await expect_end(running.dial())


async def test_stopping_the_server_ends_executors_and_leaves_no_process(stub_native: Path, tmp_path: Path) -> None:
    async with running_server(stub_native, tmp_path) as running:
        _, granted = await running.lease_all()
        _, reply = await running.open_session(granted.secret)
        assert reply.code == 0
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
