"""Runs a C client again and again against one server, and fails if processes, descriptors, shared memory or memory grow.

python benchmarks/cycles.py --cycles 2000 --limit 240
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CLIENT = ROOT / "tests" / "conformance" / "programs" / "vector_add.c"
WARM_UP = 50
# Allocators keep a little more after a while; a leak of a hundred bytes per cycle would be seen.
TOLERATED_KIB = 1024
LOOP = """
    i=0; end=$(($(date +%s) + $3))
    while [ $i -lt $2 ] && [ $(date +%s) -lt $end ]; do $1 >/dev/null || exit 1; i=$((i + 1)); done
    echo $i
"""


@dataclass(frozen=True)
class Held:
    """What a server and its machine hold at one moment."""

    processes: int
    descriptors: int
    shared_files: int
    memory_kib: int


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=2000)
    parser.add_argument("--limit", type=float, default=240.0, help="seconds at most; fewer cycles count then")
    parser.add_argument("--path", choices=("shm", "tcp"), default="shm")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, server(folder) as (process, address):
        client = str(Path(folder) / "client")
        subprocess.run(["cc", "-O1", f"-I{ROOT / 'native'}", str(CLIENT), "-o", client, "-ldl", "-lpthread"], check=True)
        run_cycles(address, options.path, client, WARM_UP, options.limit)
        before, started = held(process.pid), time.monotonic()
        done = run_cycles(address, options.path, client, options.cycles, options.limit)
        after, seconds = held(process.pid), time.monotonic() - started
    grown = {name: value - asdict(before)[name] for name, value in asdict(after).items()}
    leaks = grown["processes"] > 0 or grown["descriptors"] > 0 or grown["shared_files"] > 0 or grown["memory_kib"] > TOLERATED_KIB
    print(
        json.dumps(
            {"name": f"run.cycles.{options.path}", "value": done, "seconds": round(seconds, 1), "grown": grown, "leaks": leaks}
        )
    )
    return 1 if leaks else 0


def run_cycles(address: str, path: str, client: str, cycles: int, limit_s: float) -> int:
    """The client's runs under one lease, one after the other; returns how many there were."""
    loop = ("sh", "-c", LOOP, "sh", client, str(cycles), str(int(limit_s)))
    command = [*weft("run", "--server", address, "--path", path), "--", *loop]
    return int(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


@contextlib.contextmanager
def server(folder: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = weft("serve", "--software-gpus", "1", "--listen", "127.0.0.1:0", "--cache-dir", folder, "--log-level", "warning")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().removeprefix("listening on ").strip()
        finally:
            process.terminate()


def held(pid: int) -> Held:
    """Children that are still there are counted, so this is asked when all clients have gone."""
    status = Path(f"/proc/{pid}/status").read_text()
    memory = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    shared = sum("weft" in name for name in os.listdir("/dev/shm"))  # noqa: S108
    return Held(len(children), len(os.listdir(f"/proc/{pid}/fd")), shared, memory)


def weft(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "weft", *arguments]


if __name__ == "__main__":
    sys.exit(main())
