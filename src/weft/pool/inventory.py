"""Which GPUs a server has: software GPUs from settings, or those of a driver, asked through the executor's --probe."""

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from weft.base.errors import InvalidOption, NoDriver
from weft.base.ids import GpuUuid
from weft.base.native import EXECUTOR, SHIM, SOFTWARE_GPU, native_file
from weft.base.units import MIB, format_bytes, parse_bytes
from weft.model.gpu import GRANULE_BYTES, Gpu
from weft.placement.fractions import Inventory
from weft.pool.executors import ExecutorSetup, executor_environment

MAX_SOFTWARE_GPUS = 16
PROBE_TIMEOUT_S = 60.0
SOFTWARE_DRIVER = "software GPU"


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """What `weft-executor --probe` prints."""

    driver_version: int
    devices: tuple[Gpu, ...]


@dataclass(frozen=True)
class Supply:
    """A server's GPUs with what its executors need to serve them. driver: a line for people."""

    inventory: Inventory
    setup: ExecutorSetup
    driver: str


def software_supply(
    gpus: int, memory: str, capability: str, cache_dir: Path, cache_bytes: int, environ: Mapping[str, str]
) -> Supply:
    """Raises InvalidOption, NativePartMissing."""
    memory_bytes, (major, minor) = _parse_memory(memory), _parse_capability(capability)
    if not 1 <= gpus <= MAX_SOFTWARE_GPUS:
        raise InvalidOption("--software-gpus", gpus, f"a number from 1 to {MAX_SOFTWARE_GPUS}")
    extra = {
        "WEFT_SWGPU_DEVICES": str(gpus),
        "WEFT_SWGPU_MEMORY_BYTES": str(memory_bytes),
        "WEFT_SWGPU_COMPUTE_CAPABILITY": f"{major}.{minor}",
    }
    name = environ.get("WEFT_SWGPU_NAME") or "Weft Software GPU"
    devices = tuple(
        Gpu(ordinal=i, name=name, uuid=GpuUuid(f"GPU-software-{i}"), total_bytes=memory_bytes, compute_capability=(major, minor))
        for i in range(gpus)
    )
    setup = _setup(str(native_file(SOFTWARE_GPU)), cache_dir, cache_bytes, environ, extra)
    return Supply(Inventory(devices), setup, SOFTWARE_DRIVER)


def driver_supply(driver: str, cache_dir: Path, cache_bytes: int, environ: Mapping[str, str]) -> Supply:
    """The GPUs that a driver library shows. Raises NoDriver, NativePartMissing."""
    setup = _setup(driver, cache_dir, cache_bytes, environ, {})
    probe = _probe(setup)
    if not probe.devices:
        raise NoDriver(f"the driver {driver} shows no device")
    major, minor = divmod(probe.driver_version, 1000)
    return Supply(Inventory(probe.devices), setup, f"{driver} (CUDA {major}.{minor // 10})")


def _setup(driver: str, cache_dir: Path, cache_bytes: int, environ: Mapping[str, str], extra: Mapping[str, str]) -> ExecutorSetup:
    shim_dir = native_file(SHIM).parent
    return ExecutorSetup(
        program=native_file(EXECUTOR),
        driver=driver,
        cache_dir=cache_dir,
        cache_bytes=cache_bytes,
        environ=executor_environment(environ, extra, shim_dir),
    )


def _probe(setup: ExecutorSetup) -> Probe:
    command = [str(setup.program), "--probe", "--driver", setup.driver]
    try:
        done = subprocess.run(
            command, env=dict(setup.environ), stdin=subprocess.DEVNULL, capture_output=True, timeout=PROBE_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise NoDriver(f"{setup.driver} did not answer within {PROBE_TIMEOUT_S:g} s") from None
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    if done.returncode != 0:
        raise NoDriver(lines[-1] if lines else f"the probe of {setup.driver} ended with status {done.returncode}")
    try:
        return msgspec.json.decode(done.stdout, type=Probe)
    except msgspec.DecodeError as error:
        raise NoDriver(f"the probe of {setup.driver} cannot be read: {error}") from None


def _parse_memory(text: str) -> int:
    try:
        size = parse_bytes(text, bare_unit_bytes=MIB)
    except ValueError as error:
        raise InvalidOption("--memory", text, "a size such as 8GiB", str(error)) from None
    if size < GRANULE_BYTES or size > 1 << 40:
        raise InvalidOption("--memory", text, f"a size from {format_bytes(GRANULE_BYTES)} to 1 TiB")
    return size // GRANULE_BYTES * GRANULE_BYTES


def _parse_capability(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{1,2})\.(\d)", text)
    if match is None or not 5 <= int(match[1]) <= 12:
        raise InvalidOption("--compute-capability", text, "major.minor from 5.0 to 12.9")
    return int(match[1]), int(match[2])
