"""`weft replay`: reruns a call stream written by `weft run --record` against a driver, and prints the executor's report."""

import os
import subprocess
from pathlib import Path
from typing import Annotated

import typer

from weft.base.errors import ExecutorFailed, OptionsConflict, UnreadableFile
from weft.base.native import EXECUTOR, SHIM, SOFTWARE_GPU, native_file
from weft.pool.executors import executor_environment

app = typer.Typer()


@app.command()
def replay(
    file: Annotated[str, typer.Argument(help="A file written by weft run --record")],
    driver: Annotated[str | None, typer.Option(help="Driver library to run against, such as libcuda.so.1")] = None,
    software: Annotated[bool, typer.Option("--software", help="Run against the software GPU (the default)")] = False,
) -> int:
    """Rerun a recorded call stream against any driver."""
    if driver and software:
        raise OptionsConflict("--driver", "--software", "the software GPU is a driver, too")
    if not Path(file).is_file():
        raise UnreadableFile("recording", file, "no such file", "make one with: weft run --record FILE -- PROGRAM")
    environ = executor_environment(os.environ, {}, native_file(SHIM).parent)
    command = [str(native_file(EXECUTOR)), "--replay", file, "--driver", driver or str(native_file(SOFTWARE_GPU))]
    done = subprocess.run(command, env=environ, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise ExecutorFailed(f"the replay of {file}", done.returncode, lines[-1] if lines else "")
    return 0
