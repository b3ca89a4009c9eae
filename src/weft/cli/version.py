"""`weft version`: this program's version and, with --all, everything a bug report needs."""

import platform
import subprocess
from typing import Annotated

import typer

from weft import __version__
from weft.base.errors import WeftError
from weft.base.native import EXECUTOR, NULL_DRIVER, SHIM, SOFTWARE_GPU, native_dir, native_file
from weft.gen.preamble import PROTOCOL_OLDEST, PROTOCOL_VERSION
from weft.pool import protocol

app = typer.Typer()


@app.command()
def version(
    everything: Annotated[bool, typer.Option("--all", help="Also protocols, native parts and the machine")] = False,
) -> int:
    """Show the version."""
    print(f"weft {__version__}")
    if everything:
        print(f"control protocol {protocol.OLDEST_PROTOCOL} to {protocol.PROTOCOL}")
        print(f"session protocol {PROTOCOL_OLDEST} to {PROTOCOL_VERSION}")
        print(f"native parts in {native_dir()}: {', '.join(_native_parts())}")
        print(f"executor: {_executor_version()}")
        print(f"Python {platform.python_version()}, Linux {platform.release()}, {platform.machine()}")
    return 0


def _native_parts() -> list[str]:
    parts = []
    for name in (SHIM, EXECUTOR, SOFTWARE_GPU, NULL_DRIVER):
        try:
            native_file(name)
            parts.append(name)
        except WeftError:
            parts.append(f"{name} (missing)")
    return parts


def _executor_version() -> str:
    try:
        done = subprocess.run([native_file(EXECUTOR), "--version"], capture_output=True, text=True, timeout=10, check=False)
    except (WeftError, OSError, subprocess.TimeoutExpired) as error:
        return f"unknown ({error})"
    return done.stdout.strip() or done.stderr.strip() or f"unknown (exit status {done.returncode})"
