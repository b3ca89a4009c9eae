"""CUDA C++ programs as nvcc builds them, with the shared runtime and with the static one inside, over both paths.

Each program is compiled once per test run and checks its own numbers. The device code is PTX, compressed as nvcc does by default.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.integration.conftest import run_weft
from weft.base.native import native_dir

Environment = dict[str, str]

SOURCES = Path(__file__).parent / "programs" / "cuda"
WHEELS = Path(sysconfig.get_path("purelib")) / "nvidia"
TARGET = ("-gencode", "arch=compute_75,code=compute_75", "-std=c++17")
LINKED = ("shared", "static")


@dataclass(frozen=True)
class Program:
    """Files and what the compiler is told beside the usual. says: what it prints before its last line."""

    sources: tuple[str, ...]
    options: tuple[str, ...] = ()
    says: str = ""


PROGRAMS = {
    "asserts": Program(("asserts.cu",)),
    "boxes": Program(("boxes.cu",)),
    "callbacks": Program(("callbacks.cu",)),
    "faults": Program(("faults.cu",)),
    "graphs": Program(("graphs.cu",)),
    "grid_sync": Program(("grid_sync.cu",)),
    "kernels": Program(("kernels.cu",)),
    "managed": Program(("managed.cu",)),
    "nodes": Program(("nodes.cu",)),
    "prints": Program(("prints.cu",), says="thread 3 of block 0 says 42 and 1.50\n"),
    "runtime": Program(("runtime.cu",)),
    "separate": Program(("separate_main.cu", "separate_part.cu"), ("-rdc=true",)),
    "textures": Program(("textures.cu",)),
    "thread_streams": Program(("thread_streams.cu",), ("--default-stream", "per-thread")),
    "two_devices": Program(("two_devices.cu",)),
}
WITHOUT_OWN_TEST = [name for name in PROGRAMS if name not in ("asserts", "faults", "two_devices")]

pytestmark = [pytest.mark.usefixtures("native_parts"), pytest.mark.timeout(120)]


class Toolkit:
    """A compiler with the headers and static library of one major, which builds each program once."""

    def __init__(self, major: str, folder: Path) -> None:
        self.folder = folder
        self.major = major
        self.nvcc = folder / "bin" / "nvcc"
        newest = WHEELS / "cu13"
        runtime = newest if major == "13" else WHEELS / "cuda_runtime"
        if not (newest / "bin" / "nvcc").exists() or not (runtime / "lib").exists():
            pytest.skip("the CUDA compiler's wheels are not installed (requirements/test.txt)")
        # nvcc looks for everything beside itself, so each major has a tree of its own with the same compiler.
        shutil.copytree(newest / "bin", folder / "bin")
        (folder / "nvvm").symlink_to(newest / "nvvm")
        (folder / "include").mkdir()
        for header in (runtime / "include").iterdir():
            (folder / "include" / header.name).symlink_to(header)
        if major != "13":
            for name in ("crt", "fatbinary_section.h"):  # the compiler's own
                (folder / "include" / name).symlink_to(newest / "include" / name)
        (folder / "lib").mkdir()
        for name in ("libcudart_static.a", "libcudadevrt.a"):
            (folder / "lib" / name).symlink_to(runtime / "lib" / name)
        (folder / "lib" / "libcudart.so").symlink_to(native_dir().absolute() / "client" / f"libcudart.so.{major}")

    def build(self, name: str, linked: str) -> Path:
        program = self.folder / f"{name}-{linked}"
        if not program.exists():
            about = PROGRAMS[name]
            objects = [str(self.compile(source, about.options)) for source in about.sources]
            run_tool(str(self.nvcc), *TARGET, *about.options, *objects, "-o", str(program), "-cudart", linked)
        return program

    def compile(self, source: str, options: tuple[str, ...]) -> Path:
        compiled = self.folder / f"{source}.o"
        if not compiled.exists():
            run_tool(str(self.nvcc), *TARGET, *options, "-c", str(SOURCES / source), "-o", str(compiled))
        return compiled


Build = Callable[[str, str], Path]


def run_tool(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="session")
def toolkits(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Toolkit]:
    return cache(lambda major: Toolkit(major, tmp_path_factory.mktemp(f"cuda{major}")))


@pytest.fixture
def build(toolkits: Callable[[str], Toolkit]) -> Build:
    return toolkits("13").build


@pytest.mark.parametrize("path", ["shm", "tcp"])
@pytest.mark.parametrize("linked", LINKED)
@pytest.mark.parametrize("name", WITHOUT_OWN_TEST)
def test_a_program_of_nvcc_gets_its_numbers(environment: Environment, build: Build, name: str, linked: str, path: str) -> None:
    done = run_weft("run", "--path", path, "--", str(build(name, linked)), environ=environment, timeout_s=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{PROGRAMS[name].says}ok\n", "")


@pytest.mark.parametrize("linked", LINKED)
@pytest.mark.parametrize("name", ["kernels", "runtime"])
def test_a_program_of_cuda_12_gets_its_numbers(
    environment: Environment, toolkits: Callable[[str], Toolkit], name: str, linked: str
) -> None:
    program = toolkits("12").build(name, linked)
    done = run_weft("run", "--", str(program), environ=environment, timeout_s=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ok\n", "")


@pytest.mark.parametrize("path", ["shm", "tcp"])
@pytest.mark.parametrize("linked", LINKED)
def test_a_program_uses_two_devices(environment: Environment, build: Build, linked: str, path: str) -> None:
    program = str(build("two_devices", linked))
    environ = environment | {"WEFT_SOFTWARE_GPUS": "2"}
    done = run_weft("run", "-n", "2", "--path", path, "--", program, environ=environ, timeout_s=60)
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
    compiled = program.parent / "kernels.cu.o"
    rpath = ("-Wl,--disable-new-dtags", f"-Wl,-rpath,{tmp_path}")
    run_tool("c++", str(compiled), "-o", str(linked), f"-L{program.parent / 'lib'}", "-lcudart", *rpath)
    done = run_weft("run", "--", str(linked), environ=environment, timeout_s=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ok\n", "")


def test_without_weft_the_redirection_touches_nothing_else(environment: Environment) -> None:
    library = native_dir().absolute() / "client" / "libweft-redirect.so"
    environ = environment | {"LD_PRELOAD": str(library)}
    done = subprocess.run(["sh", "-c", "echo $0", "x"], env=os.environ | environ, capture_output=True, text=True, timeout=10)
    assert (done.stdout, done.stderr) == ("x\n", "")


@pytest.mark.parametrize("path", ["shm", "tcp"])
def test_an_error_that_stays_ends_with_a_reset(environment: Environment, build: Build, path: str) -> None:
    done = run_weft("run", "--path", path, "--", str(build("faults", "shared")), environ=environment, timeout_s=60)
    assert (done.returncode, done.stdout) == (0, "ok\n")
    (line,) = done.stderr.splitlines()
    assert "illegal address 0x10" in line


def test_an_assertion_of_a_kernel_is_told(environment: Environment, build: Build) -> None:
    done = run_weft("run", "--", str(build("asserts", "static")), environ=environment, timeout_s=60)
    assert (done.returncode, done.stdout) == (0, "ok\n")
    assert 'thread: [0,0,0] Assertion `value == 1 && "must be one"` failed.' in done.stderr


def run_python(environment: Environment, script: str) -> subprocess.CompletedProcess[str]:
    return run_weft("run", "--", sys.executable, "-c", "import ctypes\n" + script, environ=environment)


def test_properties_of_cuda_11_programs_end_where_they_did(environment: Environment) -> None:
    """cudaGetDeviceProperties without a suffix is what programs built with CUDA 11 call; today's name ends with _v2."""
    script = """
runtime = ctypes.CDLL("libcudart.so.12")
old, new = (ctypes.c_ubyte * 1032)(*[0xAB] * 1032), (ctypes.c_ubyte * 1032)()
assert runtime.cudaGetDeviceProperties(old, 0) == 0
assert runtime.cudaGetDeviceProperties_v2(new, 0) == 0
assert bytes(old)[:728] == bytes(new)[:728]
assert bytes(old)[728:] == b"\\xab" * 304
print(bytes(new)[:16].decode())
"""
    done = run_python(environment, script)
    assert (done.returncode, done.stdout, done.stderr) == (0, "Weft Software GPU"[:16] + "\n", "")


def test_what_is_not_there_says_so_once(environment: Environment) -> None:
    script = """
runtime = ctypes.CDLL("libcudart.so.13")
print(runtime.cudaGreenCtxCreate(), runtime.cudaGreenCtxCreate(), runtime.cudaPeekAtLastError())
"""
    done = run_python(environment, script)
    assert (done.returncode, done.stdout) == (0, "801 801 801\n")
    (line,) = done.stderr.splitlines()
    assert "cudaGreenCtxCreate is not supported" in line


def test_who_asks_for_private_tables_is_named(environment: Environment) -> None:
    script = """
driver = ctypes.CDLL("libcuda.so.1")
table = ctypes.c_void_p(1)
print([driver.cuGetExportTable(ctypes.byref(table), bytes(16)) for _ in range(2)], table.value)
"""
    done = run_python(environment, script)
    assert (done.returncode, done.stdout) == (0, "[500, 500] None\n")
    (line,) = done.stderr.splitlines()
    assert "ffi" in line, "the library that made the call"
    assert "private tables" in line


def test_a_program_that_makes_no_cuda_call_needs_no_gpu(environment: Environment, build: Build) -> None:
    """Kernels and variables are registered before main; that alone must not start a session."""
    done = run_weft("run", "--stats", "--", str(build("kernels", "shared")), "only-register", environ=environment)
    assert done.returncode == 0
    assert "the program opened no session" in done.stderr
