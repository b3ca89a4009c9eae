"""The main job: unmodified programs on a slice, over both paths, with numbers that are checked."""

import json
import os
import struct
import sys
import zlib
from pathlib import Path

import pytest

from tests.integration.conftest import PROGRAMS, run_weft, serving

ROOT = Path(__file__).parents[2]
Environment = dict[str, str]

pytestmark = pytest.mark.usefixtures("native_parts")


@pytest.fixture(params=["shm", "tcp"])
def path(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_program_increments_on_half_of_a_gpu(environment: Environment, path: str) -> None:
    done = run_weft(
        "run", "-p", "0.5", "--path", path, "--stats", "--", sys.executable, "-m", f"{PROGRAMS}.add_one", environ=environment
    )
    assert (done.returncode, done.stdout) == (0, "768\n"), done.stderr
    assert f"path {path}" in done.stderr
    assert "1 of them kernel launches, in 1 process" in done.stderr


def test_work_goes_on_while_the_program_makes_no_call(environment: Environment, path: str) -> None:
    done = run_weft("run", "--path", path, "--", sys.executable, "-m", f"{PROGRAMS}.no_further_call", environ=environment)
    assert (done.returncode, done.stdout) == (0, f"{3 * (1 << 18)}\n"), done.stderr


def test_the_slice_is_all_that_a_program_can_have(environment: Environment, path: str) -> None:
    done = run_weft("run", "-m", "512", "--path", path, "--", sys.executable, "-m", f"{PROGRAMS}.exhaust", environ=environment)
    assert done.returncode == 0, done.stderr
    total_mib, held_mib, word = map(int, done.stdout.split())
    assert (total_mib, held_mib, word) == (512, 512, 42)


def test_two_halves_of_one_gpu_serve_two_programs_at_once(environment: Environment) -> None:
    program = f"{sys.executable} -m {PROGRAMS}.exhaust"
    with serving("--software-gpus", "1", "--memory", "1GiB", environ=environment) as server:
        weft = f"{sys.executable} -m weft run -p 0.5 --server {server.address} -- {program}"
        done = run_weft(
            "run", "-p", "0.5", "--server", server.address, "--", "sh", "-c", f"{weft} & {program}; wait", environ=environment
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "512 512 42\n512 512 42\n"


def test_the_processes_of_one_lease_share_its_cap(environment: Environment) -> None:
    done = run_weft("run", "-m", "512", "--stats", "--", sys.executable, "-m", f"{PROGRAMS}.share", environ=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "512 256 42 7\n"
    assert "in 2 processes" in done.stderr


@pytest.mark.timeout(120)
@pytest.mark.parametrize("renderer", ["CUDA:PTX", "CUDA"])
def test_tinygrad_trains_to_95_percent(environment: Environment, tmp_path: Path, path: str, renderer: str) -> None:
    environ = environment | {"DEV": renderer, "CACHEDB": str(tmp_path / "cache.db")} | library_path()
    script = str(ROOT / "examples" / "train_digits.py")
    done = run_weft("run", "-p", "0.5", "--path", path, "--", sys.executable, script, "--json", environ=environ, timeout_s=110)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["test_accuracy"] >= 0.95
    assert result["test_images"] == 359
    assert sum(result["losses"][-10:]) < 0.3 * sum(result["losses"][:10])


@pytest.mark.timeout(120)
def test_tinygrad_trains_with_graphs(environment: Environment, tmp_path: Path, path: str) -> None:
    """Its JIT makes a graph of a step; each launch follows some updates of nodes, and none of them waits."""
    trace = tmp_path / "calls.jsonl"
    environ = environment | {"DEV": "CUDA:PTX", "JIT": "1", "CACHEDB": str(tmp_path / "cache.db")} | library_path()
    script = str(ROOT / "examples" / "train_digits.py")
    command = [sys.executable, script, "--json"]
    done = run_weft("run", "--path", path, "--trace", str(trace), "--", *command, environ=environ, timeout_s=110)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["test_accuracy"] >= 0.95
    assert sum(result["losses"][-10:]) < 0.3 * sum(result["losses"][:10])
    calls = [json.loads(line) for line in trace.read_text().splitlines()]
    launches = [call for call in calls if call["call"] == "cuGraphLaunch"]
    updates = [call for call in calls if call["call"] == "cuGraphExecKernelNodeSetParams"]
    assert len(launches) >= 100
    assert len(updates) >= 2 * len(launches)
    assert all(call["wait_us"] == 0 for call in launches + updates)


@pytest.mark.timeout(120)
def test_numba_draws_the_mandelbrot_set(environment: Environment, tmp_path: Path, path: str) -> None:
    picture = tmp_path / "m.png"
    script = str(ROOT / "examples" / "mandelbrot.py")
    size = ("--width", "160", "--height", "128", "--limit", "60")
    command = [sys.executable, script, *size, "--output", str(picture), "--json"]
    done = run_weft("run", "-p", "0.25", "--path", path, "--", *command, environ=environment, timeout_s=110)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    expected = mandelbrot_on_the_cpu(160, 128, 60)
    assert result["pixels"] == expected["pixels"]
    # The compiler fuses multiplications and additions, which moves a few points across the border.
    assert abs(result["inside"] - expected["inside"]) <= 0.002 * expected["pixels"]
    assert abs(result["iterations"] - expected["iterations"]) <= 0.002 * expected["iterations"]
    data = picture.read_bytes()
    assert struct.unpack(">II", data[16:24]) == (160, 128)
    length = struct.unpack(">I", data[33:37])[0]
    assert len(zlib.decompress(data[41 : 41 + length])) == 128 * (1 + 3 * 160)


@pytest.mark.timeout(120)
def test_numba_reduces_counts_and_overlaps(environment: Environment, path: str) -> None:
    command = [sys.executable, "-m", f"{PROGRAMS}.numba_suite"]
    done = run_weft("run", "-p", "0.25", "--path", path, "--", *command, environ=environment, timeout_s=110)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["streams"] == [31.0, 63.0, 95.0, 127.0]


@pytest.mark.timeout(120)
def test_numba_shares_managed_and_mapped_arrays(environment: Environment, path: str) -> None:
    command = [sys.executable, "-m", f"{PROGRAMS}.numba_unified"]
    done = run_weft("run", "-p", "0.25", "--path", path, "--", *command, environ=environment, timeout_s=110)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"managed": 80792.0, "mapped": 80792.0}


def test_devices_of_a_lease_copy_to_each_other(environment: Environment, path: str) -> None:
    command = [sys.executable, "-m", f"{PROGRAMS}.peers"]
    environ = environment | {"WEFT_SOFTWARE_GPUS": "2"}
    done = run_weft("run", "-n", "2", "--path", path, "--", *command, environ=environ, timeout_s=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "{1} {2}"


def test_a_trace_names_the_calls_and_a_recording_replays(environment: Environment, tmp_path: Path) -> None:
    trace, recording = tmp_path / "trace", tmp_path / "recording"
    observers = ("--trace", str(trace), "--record", str(recording))
    done = run_weft("run", *observers, "--", sys.executable, "-m", f"{PROGRAMS}.add_one", environ=environment)
    assert done.returncode == 0, done.stderr
    text = trace.read_text()
    for name in ("cuModuleLoadData", "cuLaunchKernel", "cuMemcpyDtoH"):
        assert f'"{name}"' in text
    replayed = run_weft("replay", str(recording), environ=environment)
    assert replayed.returncode == 0, replayed.stderr
    report = json.loads(replayed.stdout)
    assert (report["launches"], report["errors"]) == (1, 0), report


def mandelbrot_on_the_cpu(width: int, height: int, limit: int) -> dict[str, int]:
    inside = iterations = 0
    pixel = 2.4 / height
    for y in range(height):
        for x in range(width):
            c, z, count = complex(-2.2 + x * pixel, -1.2 + y * pixel), 0j, 0
            while count < limit and z.real * z.real + z.imag * z.imag <= 4.0:
                z = complex(z.real * z.real - z.imag * z.imag + c.real, 2.0 * z.real * z.imag + c.imag)
                count += 1
            iterations += count
            inside += count == limit
    return {"inside": inside, "iterations": iterations, "pixels": width * height}


def library_path() -> dict[str, str]:
    """Where the wheels of the test requirements keep nvrtc and nvvm."""
    folders = [str(folder) for entry in sys.path for folder in Path(entry).glob("nvidia/*/lib") if folder.is_dir()]
    return {"LD_LIBRARY_PATH": os.pathsep.join(folders)} if folders else {}
