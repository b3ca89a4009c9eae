"""`weft gpus`: the GPUs of the configured servers, and what is free of them."""

import sys
from typing import Annotated

import anyio
import msgspec
import typer

from weft import __version__
from weft.base.errors import InvalidOption, WeftError
from weft.base.settings import RunSettings, cache_dir, load_settings
from weft.base.units import GIB, format_bytes
from weft.cli.output import OUTPUT_HELP, print_rows
from weft.cli.run import check_settings
from weft.pool.client import ControlConnection, combine_failures, connect_all
from weft.pool.inventory import software_supply
from weft.pool.protocol import GpuStatus, Info
from weft.pool.token import read_token

app = typer.Typer()


class GpuRow(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU as `weft gpus --output json` prints it; stable."""

    server: str
    driver: str
    status: GpuStatus


@app.command()
def gpus(
    server: Annotated[list[str] | None, typer.Option(help="Server to ask, host:port; may be given several times")] = None,
    token_file: Annotated[str | None, typer.Option(help="File with the server's token")] = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds to wait for a server")] = None,
    output: Annotated[str, typer.Option("--output", "-o", help=OUTPUT_HELP)] = "table",
) -> int:
    """List GPUs: of the configured servers, or the software GPUs that an embedded server would have."""
    flags = {"server": tuple(server) if server else None, "token_file": token_file, "timeout_s": timeout}
    settings = load_settings(RunSettings, flags).values
    check_settings(settings)
    if output not in ("table", "json", "name"):
        raise InvalidOption("--output", output, "table, json or name")
    rows, failures = anyio.run(_ask_all, settings) if settings.server else (_embedded_rows(settings), [])
    print_rows(
        rows, output, ("SERVER", "GPU", "NAME", "MEMORY", "FREE", "LEASES", "CC", "UUID"), _cells, lambda row: row.status.gpu.uuid
    )
    if failures and not rows:
        raise combine_failures(failures)
    for failure in failures:
        print(f"weft: {failure.message}", file=sys.stderr)
    return failures[0].exit_status if failures else 0


def _cells(row: GpuRow) -> tuple[str, ...]:
    gpu = row.status.gpu
    major, minor = gpu.compute_capability
    memory, free = format_bytes(gpu.total_bytes), format_bytes(row.status.free_bytes)
    return (row.server, str(gpu.ordinal), gpu.name, memory, free, str(row.status.leases), f"{major}.{minor}", gpu.uuid)


async def _ask_all(settings: RunSettings) -> tuple[list[GpuRow], list[WeftError]]:
    token = read_token(settings.token_file) if settings.token_file else None
    connections, failures = await connect_all(settings.server, __version__, token, settings.timeout_s)
    rows: list[GpuRow] = []
    for connection in connections:
        try:
            rows += _rows(connection.address, await _info(connection, settings.timeout_s))
        except WeftError as error:
            failures.append(error)
        finally:
            connection.close()
    return rows, failures


async def _info(connection: ControlConnection, timeout_s: float) -> Info:
    with anyio.fail_after(timeout_s):
        return await connection.info()


def _rows(server: str, info: Info) -> list[GpuRow]:
    return [GpuRow(server=server, driver=info.driver, status=status) for status in info.gpus]


def _embedded_rows(settings: RunSettings) -> list[GpuRow]:
    supply = software_supply(
        settings.software_gpus, settings.software_memory, settings.compute_capability, cache_dir(settings.cache_dir), 4 * GIB, {}
    )
    return [
        GpuRow(server="embedded", driver=supply.driver, status=GpuStatus(gpu=gpu, free_bytes=gpu.total_bytes, leases=0))
        for gpu in supply.inventory.gpus
    ]
