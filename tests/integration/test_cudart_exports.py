"""Weft's runtimes export what NVIDIA's do: every name, with its symbol version. The wheels are the reference."""

import json
import subprocess
import sysconfig
from pathlib import Path

import pytest

from tests.integration.conftest import ROOT, find_tool
from weft.base.native import native_dir

WHEELS = Path(sysconfig.get_path("purelib")) / "nvidia"
REFERENCE = {"12": WHEELS / "cuda_runtime/lib/libcudart.so.12", "13": WHEELS / "cu13/lib/libcudart.so.13"}

pytestmark = pytest.mark.usefixtures("native_parts")


def exported(library: Path) -> dict[str, str]:
    """Name -> version of each defined dynamic symbol that has one."""
    command = [find_tool("readelf"), "-W", "--dyn-syms", str(library)]
    table = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout
    rows = [fields for line in table.splitlines() if len(fields := line.split()) == 8 and "@" in fields[7] and fields[6] != "UND"]
    return {name: version for name, _, version in (fields[7].partition("@@") for fields in rows)}


def weft_runtime(major: str) -> Path:
    return native_dir() / "client" / f"libcudart.so.{major}"


@pytest.mark.parametrize("major", ["12", "13"])
def test_names_and_versions_are_those_of_the_wheel(major: str) -> None:
    if not REFERENCE[major].exists():
        pytest.skip(f"{REFERENCE[major].name} is not installed (requirements/test.txt)")
    assert exported(weft_runtime(major)) == exported(REFERENCE[major])


@pytest.mark.parametrize("major", ["12", "13"])
def test_names_and_versions_are_those_of_the_spec(major: str) -> None:
    spec = json.loads((ROOT / "spec/cuda/runtime_abi.json").read_text())["majors"][major]
    assert exported(weft_runtime(major)) == spec["exports"]


@pytest.mark.parametrize("major", ["12", "13"])
def test_the_library_carries_its_own_c_runtime(major: str) -> None:
    command = [find_tool("readelf"), "-d", str(weft_runtime(major))]
    about = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout
    assert f"Library soname: [libcudart.so.{major}]" in about
    assert "libstdc++" not in about
