"""Programs that start, compute and end again and again against one server: nothing on the server may grow.

One lease; a small C program runs in it many times. Before and after, the server's processes, descriptors, memory and shared
memory are counted; each figure is a JSON line, and the exit status is 1 when one grew.
"""

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "tests/conformance/programs/vector_add.c"
ELEMENTS = 1000
WARM_UP = 50
SETTLE_S = 10.0
SHARED_MEMORY = "/dev/shm"  # noqa: S108 - counted, not written to
# Allocators keep pages; over a full run this is about 2 KiB per cycle.
RSS_TOLERANCE_KIB = 4096


@dataclass(frozen=True)
class Usage:
    """What the server and the processes below it hold."""

    processes: int
    descriptors: int
    rss_kib: int
    shm_files: int
    memfds: int

    def growth(self, before: "Usage") -> dict[str, int]:
        return {name: value - getattr(before, name) for name, value in asdict(self).items()}

    def has_grown(self, before: "Usage") -> bool:
        growth = self.growth(before)
        return growth.pop("rss_kib") > RSS_TOLERANCE_KIB or any(value > 0 for value in growth.values())


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=Path, help="folder with the native parts")
    parser.add_argument("--cycles", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=120, help="stop after this time, with fewer cycles")
    parser.add_argument("--inner", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--server-pid", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.inner:
        return run_cycles(options.inner, options.server_pid, options.cycles, options.seconds)
    if options.tools is None:
        parser.error("--tools is missing")
    return run_lease(options.tools.absolute(), options.cycles, options.seconds)


def run_lease(tools: Path, cycles: int, seconds: float) -> int:
    env = {**os.environ, "WEFT_NATIVE_DIR": str(tools)}
    with tempfile.TemporaryDirectory() as folder, software_server(env, folder) as (address, pid):
        program = compile_program(Path(folder))

        def lease(count: int) -> int:
            command = [
                *weft(),
                "run",
                "--server",
                address,
                "--",
                sys.executable,
                str(Path(__file__).resolve()),
                "--inner",
                str(program),
            ]
            command += ["--server-pid", str(pid), "--cycles", str(count), "--seconds", str(seconds)]
            return subprocess.run(command, env=env, check=False, timeout=seconds + 60).returncode

        # The first lease loads what stays: modules of Python, caches.
        if lease(0) != 0:
            return 1
        before = measure(pid)
        status = lease(cycles)
        after = settled(pid, before)
    report("lease", before, after)
    return status or int(after.has_grown(before))


def run_cycles(program: Path, server: int, cycles: int, seconds: float) -> int:
    """Inside the lease: the program again and again, between two measurements."""
    deadline = time.monotonic() + seconds
    for _ in range(WARM_UP):
        run_program(program)
    if cycles == 0:
        return 0
    # A session ends a moment after its program; the executor's place is taken meanwhile.
    before = quiet(server)
    done, start = 0, time.monotonic()
    while done < cycles and time.monotonic() < deadline:
        run_program(program)
        done += 1
    elapsed = time.monotonic() - start
    after = settled(server, before)
    emit("cycles.count", done, "cycles")
    emit("cycles.ms_per_cycle", round(elapsed * 1e3 / max(done, 1), 2), "ms")
    report("sessions", before, after)
    return int(after.has_grown(before))


def run_program(program: Path) -> None:
    subprocess.run([str(program), str(ELEMENTS)], check=True, stdout=subprocess.DEVNULL, timeout=20)


def quiet(server: int) -> Usage:
    """A measurement that two readings in a row agree on, but for memory."""
    last = measure(server)
    deadline = time.monotonic() + SETTLE_S
    while time.monotonic() < deadline:
        time.sleep(0.2)
        now = measure(server)
        if (now.processes, now.descriptors, now.memfds) == (last.processes, last.descriptors, last.memfds):
            return now
        last = now
    return last


def settled(server: int, before: Usage) -> Usage:
    """What is left after the last session's end had its time."""
    deadline = time.monotonic() + SETTLE_S
    usage = measure(server)
    while usage.has_grown(before) and time.monotonic() < deadline:
        time.sleep(0.2)
        usage = measure(server)
    return usage


def report(stage: str, before: Usage, after: Usage) -> None:
    for name, grown in after.growth(before).items():
        emit(f"cycles.{stage}.{name}_growth", grown, "KiB" if name == "rss_kib" else "", getattr(after, name))


def emit(name: str, value: float, unit: str, after: float | None = None) -> None:
    print(json.dumps({"name": name, "value": value, "unit": unit, **({"after": after} if after is not None else {})}), flush=True)


def measure(server: int) -> Usage:
    tree = descendants(server)
    links = {pid: descriptors(pid) for pid in tree}
    memfds = sum(link.startswith("/memfd:") for each in links.values() for link in each)
    return Usage(len(tree) - 1, len(links[server]), resident_kib(server), len(os.listdir(SHARED_MEMORY)), memfds)


def descendants(pid: int) -> list[int]:
    """The process and all below it; from parents, because not every kernel lists children."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if entry.isdigit():
                parent = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[1]
                children.setdefault(int(parent), []).append(int(entry))
    found = [pid]
    for each in found:
        found += children.get(each, [])
    return found


def descriptors(pid: int) -> list[str]:
    links = []
    with contextlib.suppress(OSError):
        for entry in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                links.append(os.readlink(f"/proc/{pid}/fd/{entry}"))
    return links


def resident_kib(pid: int) -> int:
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) if found else 0


def compile_program(folder: Path) -> Path:
    program = folder / "vector_add"
    subprocess.run(
        [os.environ.get("CC", "cc"), "-O1", f"-I{ROOT / 'native'}", "-o", str(program), str(PROGRAM), "-ldl"], check=True
    )
    return program


@contextlib.contextmanager
def software_server(env: dict[str, str], folder: str) -> Iterator[tuple[str, int]]:
    """A server of one software GPU on a free port; yields its address and process id."""
    command = [*weft(), "serve", "--software-gpus", "1", "--listen", "127.0.0.1:0", "--cache-dir", folder]
    server = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert server.stdout is not None
        for line in server.stdout:
            if found := re.search(r"127\.0\.0\.1:\d+", line):
                yield found[0], server.pid
                break
        else:
            raise RuntimeError("weft serve did not start")
    finally:
        server.terminate()
        server.wait(timeout=10)


def weft() -> list[str]:
    return [sys.executable, "-m", "weft"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
