"""CUDA C++ programs as nvcc builds them, with the shared runtime and with the static one inside, over both paths.

Each program is compiled once per test run and checks its own numbers. The device code is PTX, compressed as nvcc does by default.
"""

import os
import shutil
import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.conftest import run_weft
from weft.base.native import native_dir

Environment = dict[str, str]
Build = Callable[[str, str], Path]

SOURCES = Path(__file__).parent / "programs" / "cuda"
TOOLKIT = Path(sysconfig.get_path("purelib")) / "nvidia" / "cu13"
TARGET = ("-gencode", "arch=compute_75,code=compute_75", "-std=c++17")
# Programs, with what the compiler is told beside the usual.
PROGRAMS: dict[str, tuple[str, ...]] = {"kernels": (), "runtime": ()}
LINKED = ("shared", "static")

pytestmark = [pytest.mark.usefixtures("native_parts"), pytest.mark.timeout(120)]


def run_tool(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Gives a program with the runtime linked as asked, building what is missing."""
    nvcc = str(TOOLKIT / "bin" / "nvcc") if (TOOLKIT / "bin" / "nvcc").exists() else shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("no nvcc (install requirements/test.txt)")
    folder = tmp_path_factory.mktemp("cuda")
    (folder / "libcudart.so").symlink_to(native_dir().absolute() / "client" / "libcudart.so.13")

    def get(name: str, linked: str) -> Path:
        program, compiled = folder / f"{name}-{linked}", folder / f"{name}.o"
        if not compiled.exists():
            run_tool(nvcc, *TARGET, *PROGRAMS.get(name, ()), "-c", str(SOURCES / f"{name}.cu"), "-o", str(compiled))
        if not program.exists():
            libraries = (f"-L{folder}", f"-L{TOOLKIT / 'lib'}", "-cudart", linked)
            run_tool(nvcc, *TARGET, str(compiled), "-o", str(program), *libraries)
        return program

    return get


@pytest.mark.parametrize("path", ["shm", "tcp"])
@pytest.mark.parametrize("linked", LINKED)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_of_nvcc_gets_its_numbers(environment: Environment, build: Build, name: str, linked: str, path: str) -> None:
    done = run_weft("run", "--path", path, "--", str(build(name, linked)), environ=environment, timeout_s=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ok\n", "")


def test_a_stripped_program_with_a_runtime_inside_is_refused_before_it_starts(
    environment: Environment, build: Build, tmp_path: Path
) -> None:
    stripped = tmp_path / "stripped"
    run_tool("strip", "-o", str(stripped), str(build("kernels", "static")))
    done = run_weft("run", "--", str(stripped), environ=environment)
    assert (done.returncode, done.stdout) == (125, "")
    first, hint = done.stderr.splitlines()
    assert str(stripped) in first
    assert "-cudart shared" in hint


def test_a_stripped_program_that_another_one_starts_is_refused_as_well(
    environment: Environment, build: Build, tmp_path: Path
) -> None:
    stripped = tmp_path / "stripped"
    run_tool("strip", "-o", str(stripped), str(build("kernels", "static")))
    done = run_weft("run", "--", "sh", "-c", f"{stripped}; echo $?", environ=environment)
    assert done.stdout == "125\n"
    (line,) = done.stderr.splitlines()
    assert str(stripped) in line
    assert "-cudart shared" in line


def test_a_stripped_program_with_the_shared_runtime_runs(environment: Environment, build: Build, tmp_path: Path) -> None:
    stripped = tmp_path / "stripped"
    run_tool("strip", "-o", str(stripped), str(build("kernels", "shared")))
    done = run_weft("run", "--", str(stripped), environ=environment, timeout_s=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ok\n", "")


def test_a_program_that_knows_another_runtime_by_its_path_gets_wefts(
    environment: Environment, build: Build, tmp_path: Path
) -> None:
    """A program linked with an RPATH finds its runtime there even before LD_LIBRARY_PATH."""
    (tmp_path / "libcudart.so.13").write_text("not a library")
    program = build("kernels", "shared")
    linked = tmp_path / "with-rpath"
    compiled = program.parent / "kernels.o"
    rpath = ("-Wl,--disable-new-dtags", f"-Wl,-rpath,{tmp_path}")
    run_tool("c++", str(compiled), "-o", str(linked), f"-L{program.parent}", "-lcudart", *rpath)
    done = run_weft("run", "--", str(linked), environ=environment, timeout_s=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ok\n", "")


def test_without_weft_the_redirection_touches_nothing_else(environment: Environment) -> None:
    library = native_dir().absolute() / "client" / "libweft-redirect.so"
    environ = environment | {"LD_PRELOAD": str(library)}
    done = subprocess.run(["sh", "-c", "echo $0", "x"], env=os.environ | environ, capture_output=True, text=True, timeout=10)
    assert (done.stdout, done.stderr) == ("x\n", "")
