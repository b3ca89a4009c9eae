"""A lease in the hands of `weft run`, from a configured server or from one embedded in this process."""

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio

from weft.base.errors import Unreachable, WeftError
from weft.base.log import EventLog
from weft.base.settings import RunSettings, cache_dir
from weft.base.units import GIB
from weft.model.gpu import Slice, SliceRequest
from weft.model.path import ClientFacts, ServerFacts
from weft.pool.client import ControlConnection, combine_failures, connect_all
from weft.pool.host import boot_id, can_connect_socket
from weft.pool.inventory import software_supply
from weft.pool.leases import Limits
from weft.pool.protocol import LeaseGranted
from weft.pool.server import GpuServer, open_listeners
from weft.pool.stream import Closed
from weft.pool.token import read_token

EMBEDDED_CACHE_BYTES = 4 * GIB
RELEASE_TIMEOUT_S = 2.0


@dataclass(frozen=True)
class Grant:
    """What a lease gives: slices, and where sessions are opened. secret: 64 hex digits."""

    server: str
    address: str
    secret: str
    slices: tuple[Slice, ...]
    client_facts: ClientFacts
    server_facts: ServerFacts


@asynccontextmanager
async def open_grant(
    settings: RunSettings,
    request: SliceRequest,
    program: str,
    version: str,
    log: EventLog,
    environ: Mapping[str, str] = os.environ,
) -> AsyncIterator[Grant]:
    """The lease lives as long as the context. Raises a WeftError that names what was tried."""
    opened = (
        _remote_grant(settings, request, program, version)
        if settings.server
        else _embedded_grant(settings, request, program, version, log, environ)
    )
    async with opened as grant:
        yield grant


@asynccontextmanager
async def _remote_grant(settings: RunSettings, request: SliceRequest, program: str, version: str) -> AsyncIterator[Grant]:
    token = read_token(settings.token_file) if settings.token_file else None
    connections, failures = await connect_all(settings.server, version, token, settings.timeout_s)
    try:
        connection, granted = await _first_lease(connections, failures, request, program, settings.timeout_s)
        facts = ServerFacts(boot_id=connection.welcome.boot_id, socket_name=connection.welcome.socket_name)
        yield Grant(
            server=connection.address,
            address=connection.address,
            secret=granted.secret,
            slices=granted.slices,
            client_facts=_client_facts(facts),
            server_facts=facts,
        )
        with anyio.move_on_after(RELEASE_TIMEOUT_S):
            await _release(connection, granted.lease_id)
    finally:
        for connection in connections:
            connection.close()


async def _first_lease(
    connections: Sequence[ControlConnection], failures: Sequence[WeftError], request: SliceRequest, program: str, timeout_s: float
) -> tuple[ControlConnection, LeaseGranted]:
    """The lease of the first server that grants one. Raises one error with all reasons when none does."""
    failed = list(failures)
    for connection in connections:
        try:
            with anyio.fail_after(timeout_s):
                return connection, await connection.lease(request, program)
        except WeftError as error:
            failed.append(error)
        except TimeoutError:
            failed.append(Unreachable([(connection.address, f"no answer within {timeout_s:g} s")]))
        except Closed as closed:
            failed.append(Unreachable([(connection.address, f"it closed the connection ({closed})")]))
    raise combine_failures(failed)


@asynccontextmanager
async def _embedded_grant(
    settings: RunSettings, request: SliceRequest, program: str, version: str, log: EventLog, environ: Mapping[str, str]
) -> AsyncIterator[Grant]:
    supply = software_supply(
        settings.software_gpus, settings.software_memory, settings.compute_capability,
        cache_dir(settings.cache_dir, environ), EMBEDDED_CACHE_BYTES, environ,
    )  # fmt: skip
    # Its control side is closed to everybody: nobody knows the token.
    server = GpuServer(
        supply.inventory,
        supply.setup,
        version=version,
        driver=supply.driver,
        token=os.urandom(32).hex(),
        limits=Limits(),
        log=log,
    )
    listeners = open_listeners("127.0.0.1", 0)
    try:
        lease = server.grant_lease(request, program)
    except WeftError:
        listeners.close()
        raise
    facts = ServerFacts(boot_id=boot_id(), socket_name=listeners.socket_name)
    async with anyio.create_task_group() as tasks:
        await tasks.start(server.serve, listeners)
        yield Grant(
            server=f"{listeners.address} (embedded)",
            address=listeners.address,
            secret=lease.secret.hex(),
            slices=lease.slices,
            client_facts=ClientFacts(boot_id=facts.boot_id, socket_reachable=True),
            server_facts=facts,
        )
        await server.end_lease(lease.lease_id)
        tasks.cancel_scope.cancel()


def _client_facts(server: ServerFacts) -> ClientFacts:
    ours = boot_id()
    same_host = server.socket_name is not None and ours == server.boot_id
    return ClientFacts(boot_id=ours, socket_reachable=same_host and can_connect_socket(server.socket_name or ""))


async def _release(connection: ControlConnection, lease_id: str) -> None:
    """The server ends the lease anyway when the connection closes; waiting frees the slice for whoever comes next."""
    try:
        await connection.release(lease_id)
    except (WeftError, Closed):
        return
