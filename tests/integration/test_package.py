"""The installed package: complete, and working without WEFT_NATIVE_DIR."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.conftest import PROGRAMS, ROOT, TIMEOUT_S
from weft.base.native import EXECUTOR, NULL_DRIVER, SHIM, SOFTWARE_GPU


@pytest.fixture
def installed() -> Path:
    """Folder of the installed package, seen without the source tree on the path."""
    command = [sys.executable, "-I", "-c", "import weft; print(weft.__path__[0])"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    if done.returncode != 0:
        pytest.skip("Weft is not installed in this environment (make test installs it)")
    return Path(done.stdout.strip())


def test_the_wheel_holds_all_native_parts(installed: Path) -> None:
    folder = installed / "_native"
    for name in (EXECUTOR, SOFTWARE_GPU, NULL_DRIVER, SHIM, "client/libcuda.so"):
        assert (folder / name).is_file(), name
        assert not (folder / name).is_symlink(), name
    assert os.access(folder / EXECUTOR, os.X_OK)
    assert not (folder / "weft-conformance").exists(), "tools are for development"


def test_the_installed_program_runs_a_program(installed: Path, environment: dict[str, str]) -> None:
    assert (installed / "_native" / EXECUTOR).is_file()
    environ = {name: value for name, value in environment.items() if name not in ("WEFT_NATIVE_DIR", "PYTHONPATH")}
    program = [sys.executable, "-m", f"{PROGRAMS}.add_one"]
    weft = str(Path(sys.executable).parent / "weft")
    done = subprocess.run([weft, "run", "--", *program], env=environ, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert (done.returncode, done.stdout) == (0, "768\n"), done.stderr


@pytest.mark.parametrize("name", ["libcuda.so", "libcuda.so.1"])
def test_both_names_of_the_library_are_one_instance(native_parts: Path, environment: dict[str, str], name: str) -> None:
    script = (
        "import ctypes; first, second = ctypes.CDLL('libcuda.so'), ctypes.CDLL('libcuda.so.1')\n"
        "address = lambda library: ctypes.cast(library.cuInit, ctypes.c_void_p).value\n"
        f"print(address(first) == address(second), ctypes.CDLL({name!r}).cuInit(0))"
    )
    command = [sys.executable, "-m", "weft", "run", "--", sys.executable, "-c", script]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert done.stdout == "True 0\n", done.stderr
