"""Servers and `weft` processes for the tests. Native parts come from the build (WEFT_NATIVE_DIR) or the installed package."""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from weft.base.native import EXECUTOR, SHIM, SOFTWARE_GPU, native_dir

Weft = Callable[..., subprocess.CompletedProcess[str]]
# With default signals: a test run in the background has SIGINT ignored, and programs would inherit that.
WEFT = ("env", "--default-signal", sys.executable, "-m", "weft")
TIMEOUT_S = 18
# Programs of the tests are modules, started from the root of the tree (`python -m`).
ROOT = Path(__file__).parents[2]
PROGRAMS = "tests.integration.programs"

STUB_EXECUTOR = """#!/bin/sh
# Plays an executor: says that it is there, then lives as long as its socket and its server.
echo "stub executor log" >&2
echo '{"event":"ended","reason":"stub","counters":{"frames":3}}' >&3
exec cat <&5 >/dev/null
"""


@dataclass(frozen=True)
class Server:
    """A `weft serve` process."""

    process: subprocess.Popen[str]
    address: str

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(TIMEOUT_S)


def clean_environment(**extra: str) -> dict[str, str]:
    """This process's, without settings of whoever runs the tests."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WEFT_") or name == "WEFT_NATIVE_DIR"}
    return kept | {"WEFT_CONFIG": "/nonexistent/config.toml"} | extra


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return clean_environment(WEFT_CACHE_DIR=str(tmp_path / "cache"))


@pytest.fixture
def stub_native(tmp_path: Path) -> Path:
    """A folder of native parts of which only the executor does anything, and that very little."""
    folder = tmp_path / "stub-native"
    for name in (SHIM, SOFTWARE_GPU):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    executor = folder / EXECUTOR
    executor.write_text(STUB_EXECUTOR)
    executor.chmod(0o755)
    return folder


@pytest.fixture
def stub_environment(environment: dict[str, str], stub_native: Path) -> dict[str, str]:
    return environment | {"WEFT_NATIVE_DIR": str(stub_native)}


@pytest.fixture(scope="session")
def native_parts() -> Path:
    """The real native parts; without them the tests that need them cannot run."""
    folder = native_dir()
    missing = [name for name in (SHIM, SOFTWARE_GPU, EXECUTOR) if not (folder / name).is_file()]
    if missing:
        pytest.fail(f"native parts missing in {folder}: {', '.join(missing)}; build first (make test)")
    return folder


def run_weft(*arguments: str, environ: dict[str, str], timeout_s: float = TIMEOUT_S) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*WEFT, *arguments],
        env=environ,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
        stdin=subprocess.DEVNULL,
    )


@contextlib.contextmanager
def serving(*arguments: str, environ: dict[str, str], prefix: Sequence[str] = ()) -> Iterator[Server]:
    """A server on a free port, ready when the context begins, gone when it ends."""
    command = [*prefix, *WEFT, "serve", *(() if "--listen" in arguments else ("--listen", "127.0.0.1:0")), *arguments]
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            first = process.stdout.readline()
            assert first.startswith("listening on "), process.stderr.read() if process.stderr else first
            yield Server(process, first.removeprefix("listening on ").strip())
        finally:
            process.kill()
            process.communicate()


def find_tool(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        pytest.fail(f"the tests need {name}")
    return path
