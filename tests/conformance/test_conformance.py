"""Runs weft-conformance and the C programs against each driver that this machine can offer.

A target says how a command reaches its driver: an environment, and words before the command. The folder with the native
libraries is WEFT_NATIVE_DIR (as while developing) or the one inside the installed package. One pytest case per test suite of
the program, so that each stays within the time-out.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

HERE = Path(__file__).parent
NATIVE_SOURCE = HERE.parent.parent / "native"
PROGRAMS = ("vector_add", "threads", "module_loop", "copies")
# The suites of weft-conformance, by gtest filter: parameterised ones have a prefix.
SUITES = (
    "BoxRules",
    "Boxes",
    "Captures",
    "Contexts",
    "CopyRules",
    "Copies",
    "Devices",
    "Errors",
    "Events",
    "FatalErrors",
    "Functions",
    "Globals",
    "Graphs",
    "HostFunctions",
    "HostMemory",
    "Init",
    "Launches",
    "Libraries",
    "Links",
    "Managed",
    "Memory",
    "MemoryOperations",
    "Modules",
    "Occupancy",
    "Order",
    "Pointers",
    "Pools",
    "PrimaryContexts",
    "Printing",
    "ProcAddress",
    "Streams",
    "Textures",
    "Threads",
    "Unified",
    "VirtualMemory",
)


Run = Callable[[list[str]], subprocess.CompletedProcess[str]]


def native_dir() -> Path:
    if value := os.environ.get("WEFT_NATIVE_DIR"):
        return Path(value)
    import weft

    return Path(weft.__file__).parent / "_native"


@dataclass(frozen=True)
class Target:
    """A driver under test: `prefix` runs a program on it; `library`, if any, is found by the program as libcuda.so.1.

    serves: the driver of a `weft serve` whose address the prefix gets, for the time of the whole suite.
    """

    name: str
    library: str | None = None
    prefix: tuple[str, ...] = ()
    serves: str | None = None

    def missing(self) -> str | None:
        if self.library is not None and not (native_dir() / self.library).exists():
            return f"{native_dir() / self.library} is not built (set WEFT_NATIVE_DIR)"
        return None

    def environment(self, folder: Path) -> dict[str, str]:
        environment = dict(os.environ)
        if self.library is not None:
            (folder / "libcuda.so.1").symlink_to(native_dir() / self.library)
            environment["LD_LIBRARY_PATH"] = str(folder)
        return environment


def through_weft(path: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "weft", "run", "--path", path)


TARGETS = (
    Target(name="software-gpu", library="libweft-swgpu.so"),
    Target(name="software-gpu-shm", prefix=through_weft("shm")),
    Target(name="software-gpu-tcp", prefix=through_weft("tcp")),
)
GPU_TARGETS = (
    Target(name="nvidia"),
    Target(name="nvidia-shm", prefix=through_weft("shm"), serves="libcuda.so.1"),
    Target(name="nvidia-tcp", prefix=through_weft("tcp"), serves="libcuda.so.1"),
)
PARAMETERS = [*TARGETS, *(pytest.param(target, marks=pytest.mark.gpu) for target in GPU_TARGETS)]


@pytest.fixture(scope="session", params=PARAMETERS, ids=lambda target: target.name)
def served_target(request: pytest.FixtureRequest) -> Iterator[Target]:
    """The target, with its server running if it has one."""
    target: Target = request.param
    if target.serves is None:
        yield replace(target, prefix=(*target.prefix, "--")) if target.prefix else target
        return
    command = [sys.executable, "-m", "weft", "serve", "--driver", target.serves, "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = server.stdout.readline().removeprefix("listening on ").strip()
        yield replace(target, prefix=(*target.prefix, "--server", address, "--"))
        server.terminate()


@pytest.fixture
def run(served_target: Target, tmp_path: Path) -> Run:
    if reason := served_target.missing():
        pytest.skip(reason)
    environment = served_target.environment(tmp_path)

    def call(command: list[str]) -> subprocess.CompletedProcess[str]:
        words = [*served_target.prefix, *command]
        return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=19)

    return call


@pytest.fixture(scope="session")
def conformance() -> Path:
    program = native_dir() / "weft-conformance"
    if not program.exists():
        pytest.skip(f"{program} is not built")
    return program


@pytest.mark.parametrize("suite", SUITES)
def test_suite_passes(suite: str, conformance: Path, served_target: Target, run: Run) -> None:
    done = run([str(conformance), f"--gtest_filter={suite}.*:*/{suite}.*"])
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "[  PASSED  ] 0 tests" not in done.stdout, "every test was skipped"


def test_every_suite_is_run(conformance: Path) -> None:
    listed = subprocess.run([conformance, "--gtest_list_tests"], capture_output=True, text=True, check=True).stdout
    names = {line.strip().removesuffix(".").split("/")[-1] for line in listed.splitlines() if line and not line.startswith(" ")}
    names = {name.split("#")[0].strip().removesuffix(".") for name in names if not name.startswith("DISABLED_")}
    assert names == set(SUITES)


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    for name in PROGRAMS:
        source = HERE / "programs" / f"{name}.c"
        flags = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{NATIVE_SOURCE}"]
        subprocess.run([compiler, *flags, str(source), "-o", str(folder / name), "-ldl", "-lpthread"], check=True)
    return folder


@pytest.mark.parametrize("name", PROGRAMS)
def test_c_program_checks_its_numbers(name: str, programs: Path, run: Run) -> None:
    done = run([str(programs / name)])
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(f"{name}: ")
