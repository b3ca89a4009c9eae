"""`weft serve`: the GPU server as a program. Ends on SIGTERM or SIGINT with status 0, after its executors."""

import os
import signal
from typing import Annotated

import anyio
import typer

from weft import __version__
from weft.base.errors import InvalidOption
from weft.base.log import EventLog, make_log
from weft.base.settings import ServeSettings, cache_dir, load_settings
from weft.base.units import format_bytes, parse_address, parse_bytes
from weft.pool.inventory import Supply, driver_supply, software_supply
from weft.pool.leases import Limits
from weft.pool.server import GpuServer, Listeners, open_listeners
from weft.pool.token import server_token

app = typer.Typer()
LOG_LEVELS = ("debug", "info", "warning", "error")


@app.command()
def serve(
    listen: Annotated[str | None, typer.Option(help="host:port for control and sessions; port 0 takes a free one")] = None,
    token_file: Annotated[str | None, typer.Option(help="File with the shared secret; made if missing")] = None,
    software_gpus: Annotated[int | None, typer.Option(help="Serve this many software GPUs instead of the machine's")] = None,
    memory: Annotated[str | None, typer.Option(help="Memory of each software GPU, such as 8GiB")] = None,
    compute_capability: Annotated[str | None, typer.Option(help="Compute capability of the software GPUs")] = None,
    driver: Annotated[str | None, typer.Option(help="Driver library of the machine's GPUs")] = None,
    cache: Annotated[str | None, typer.Option("--cache-dir", help="Folder of cached module images")] = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error")] = None,
    log_json: Annotated[bool | None, typer.Option("--log-json", help="Log JSON lines")] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show a traceback on errors")] = False,
) -> int:
    """Serve this machine's GPUs, or software GPUs, to `weft run` on other machines."""
    del debug  # read by weft.cli.main
    flags = {
        "listen": listen, "token_file": token_file, "driver": driver, "cache_dir": cache,
        "software_gpus": software_gpus, "software_memory": memory, "compute_capability": compute_capability,
        "log_level": log_level, "log_json": log_json,
    }  # fmt: skip
    settings = load_settings(ServeSettings, flags).values
    if settings.log_level not in LOG_LEVELS:
        raise InvalidOption("--log-level", settings.log_level, " or ".join(LOG_LEVELS))
    host, port = _parse_listen(settings.listen)
    token = server_token(settings.token_file, host)
    supply = make_supply(settings)
    listeners = open_listeners(host, port)
    log = make_log(settings.log_level, settings.log_json)
    limits = Limits(connections=settings.max_connections, sessions_per_lease=settings.max_sessions)
    server = GpuServer(
        supply.inventory, supply.setup, version=__version__, driver=supply.driver, token=token, limits=limits, log=log
    )
    _announce(listeners, supply, token)
    anyio.run(_serve, server, listeners, log)
    return 0


def make_supply(settings: ServeSettings) -> Supply:
    """Raises InvalidOption, NoDriver, NativePartMissing."""
    try:
        cache_bytes = parse_bytes(settings.cache_size)
    except ValueError:
        raise InvalidOption("cache_size", settings.cache_size, "a size such as 4GiB") from None
    folder = cache_dir(settings.cache_dir)
    if settings.software_gpus:
        return software_supply(
            settings.software_gpus, settings.software_memory, settings.compute_capability, folder, cache_bytes, os.environ
        )
    return driver_supply(settings.driver, folder, cache_bytes, os.environ)


async def _serve(server: GpuServer, listeners: Listeners, log: EventLog) -> None:
    async with anyio.create_task_group() as tasks:
        await tasks.start(server.serve, listeners)
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async for number in signals:
                log.info("server_stopping", signal=signal.Signals(number).name)
                break
        tasks.cancel_scope.cancel()


def _announce(listeners: Listeners, supply: Supply, token: str | None) -> None:
    """On stdout, so that a script can read the address; the first line is stable."""
    print(f"listening on {listeners.address}", flush=True)
    for gpu in supply.inventory.gpus:
        major, minor = gpu.compute_capability
        print(
            f"GPU {gpu.ordinal}: {gpu.name}, {format_bytes(gpu.total_bytes)}, compute capability {major}.{minor}, {supply.driver}"
        )
    print("a token is needed" if token else "no token is needed (loopback only)", flush=True)


def _parse_listen(text: str) -> tuple[str, int]:
    try:
        return parse_address(text)
    except ValueError:
        raise InvalidOption("--listen", text, "host:port") from None
