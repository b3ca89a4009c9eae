"""`make bench`: every figure of docs/design/benchmarks.md as one JSON line, beside the plain limit of the same run.

The null driver, which accepts everything and really copies, isolates what remoting costs. Results go to benchmarks/results/.
"""

import argparse
import contextlib
import datetime as dt
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PATHS = ("shm", "tcp")
# What a host function may take beyond a round trip.
CALLBACK_ALLOWANCE_US = 20.0


@dataclass(frozen=True)
class Figure:
    """`limit`: what the plain limit gave in this run; `ratio`: value over limit, in the unit of both."""

    name: str
    value: float
    unit: str
    limit: float | None = None
    ratio: float | None = None


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--tools", type=Path, required=True, help="folder with weft-bench-remoting, weft-bench-limits and the libraries"
    )
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results" / "latest.jsonl")
    options = parser.parse_args(arguments)
    figures: list[Figure] = []
    limits = read_lines(run_tool([str(options.tools / "weft-bench-limits")]))
    for figure in measure_all(options.tools, limits):
        figures.append(figure)
        print(json.dumps(asdict(figure)), flush=True)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    header = {
        "machine": describe_machine(),
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "command": "make bench",
        "limits": limits,
    }
    lines = [json.dumps(header), *(json.dumps(asdict(figure)) for figure in figures)]
    options.output.write_text("\n".join(lines) + "\n")
    return 0


def measure_all(tools: Path, limits: Mapping[str, float]) -> Iterator[Figure]:
    with null_server(tools) as server:
        for path in PATHS:
            yield from remoting_figures(path, read_lines(run_under_weft(tools, server, path)), limits)
    yield run_overhead(tools)
    yield from step_figures(tools)
    for name, value in read_lines(run_tool([str(tools / "weft-swgpu-bench")])).items():
        yield Figure(name, value, "million thread-instructions/s")


def remoting_figures(path: str, raw: Mapping[str, float], limits: Mapping[str, float]) -> Iterator[Figure]:
    """The measured values of one path against its plain limits."""

    def value(name: str) -> float:
        return raw[f"remoting.{name}.{path}"]

    ping_pong = limits[f"limits.ping_pong_us.{path}"]
    yield Figure(f"remoting.launch_p50_us.{path}", value("launch_p50_us"), "us")
    yield Figure(f"remoting.launch_p99_us.{path}", value("launch_p99_us"), "us")
    yield Figure(f"remoting.launches_per_s.{path}", value("launches_per_s"), "1/s")
    yield Figure(
        f"remoting.call_overhead_us.{path}", round(value("call_us") - ping_pong, 3), "us", ping_pong, value("call_us") / ping_pong
    )
    idle = limits.get(f"limits.ping_pong_after_1ms_us.{path}")
    after_idle = value("sync_after_1ms_idle_us")
    yield Figure(f"remoting.sync_after_1ms_idle_us.{path}", after_idle, "us", idle, after_idle / idle if idle else None)
    reached = value("launch_to_executor_p50_us")
    yield Figure(f"remoting.launch_to_executor_p50_us.{path}", reached, "us", ping_pong / 2, reached / (ping_pong / 2))
    launch = value("launch_p50_us")
    for name in ("graph_launch_p50_us", "graph_update_p50_us"):
        yield Figure(f"remoting.{name}.{path}", value(name), "us", launch, round(value(name) / launch, 3))
    frames = value("graph_launch_frames")
    yield Figure(f"remoting.graph_launch_frames.{path}", frames, "frames", 1.0, frames)
    yield Figure(f"remoting.graph_launches_per_s.{path}", value("graph_launches_per_s"), "1/s")
    callback_limit = ping_pong + CALLBACK_ALLOWANCE_US
    called = value("callback_us")
    yield Figure(f"remoting.callback_us.{path}", called, "us", callback_limit, round(called / callback_limit, 3))
    yield Figure(f"remoting.callback_and_sync_us.{path}", value("callback_and_sync_us"), "us")
    for direction in ("h2d", "d2h"):
        limit = limits["limits.memcpy_gb_per_s"] if path == "shm" else limits["limits.stream_gb_per_s.tcp"]
        speeds = {kind: value_of(raw, f"remoting.{direction}_gb_per_s.{kind}.{path}") for kind in ("pageable", "pinned")}
        for kind, speed in speeds.items():
            yield Figure(f"remoting.{direction}_gb_per_s.{kind}.{path}", speed, "GB/s", limit, round(speed / limit, 3))
        slower = min(speeds.values())
        yield Figure(f"remoting.{direction}_ratio.{path}", round(slower / limit, 3), "ratio", limit, round(slower / limit, 3))
    if path == PATHS[-1]:  # the image is known by then
        yield Figure("remoting.round_trips_to_first_launch", value("round_trips_to_first_launch"), "waits")


def value_of(raw: Mapping[str, float], name: str) -> float:
    return raw[name]


def run_overhead(tools: Path) -> Figure:
    """Median of `weft run -- true` over plain `true`, in milliseconds."""

    def median_ms(command: Sequence[str]) -> float:
        samples = []
        for _ in range(9):
            start = time.perf_counter()
            subprocess.run(command, check=True, env=environment(tools))
            samples.append((time.perf_counter() - start) * 1e3)
        return statistics.median(samples)

    plain = median_ms(["true"])
    total = median_ms([*weft(), "run", "--", "true"])
    return Figure("run.overhead_ms", round(total - plain, 1), "ms", round(plain, 1), None)


def step_figures(tools: Path) -> Iterator[Figure]:
    """Waits of one training step of the example: the difference between a longer and a shorter training."""

    def round_trips(steps: int) -> int:
        command = [
            *weft(),
            "run",
            "-p",
            "0.5",
            "--stats",
            "--",
            sys.executable,
            str(ROOT / "examples/train_digits.py"),
            "--steps",
            str(steps),
        ]
        done = subprocess.run(command, check=True, env=environment(tools), capture_output=True, text=True, timeout=240)
        found = re.search(r"([\d,]+) round trips", done.stderr)
        if found is None:
            raise RuntimeError(f"no round trips in the report:\n{done.stderr}")
        return int(found[1].replace(",", ""))

    few, many = 10, 30
    yield Figure("remoting.round_trips_per_step", round((round_trips(many) - round_trips(few)) / (many - few), 2), "waits")


@contextlib.contextmanager
def null_server(tools: Path) -> Iterator[str]:
    """A server of the null driver on a free port; yields its address."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            *weft(),
            "serve",
            "--driver",
            str(tools / "libweft-nulldriver.so"),
            "--listen",
            "127.0.0.1:0",
            "--cache-dir",
            folder,
        ]
        server = subprocess.Popen(command, env=environment(tools), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            assert server.stdout is not None
            for line in server.stdout:
                if found := re.search(r"127\.0\.0\.1:\d+", line):
                    yield found[0]
                    break
            else:
                raise RuntimeError("weft serve did not start")
        finally:
            server.terminate()
            server.wait(timeout=10)


def run_under_weft(tools: Path, server: str, path: str) -> str:
    command = [*weft(), "run", "--server", server, "--path", path, "--stats", "--", str(tools / "weft-bench-remoting")]
    return run_tool(command, tools)


def run_tool(command: Sequence[str], tools: Path | None = None) -> str:
    env = environment(tools) if tools else None
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=200, env=env).stdout


def environment(tools: Path) -> dict[str, str]:
    return {**os.environ, "WEFT_NATIVE_DIR": str(tools)}


def weft() -> list[str]:
    return [sys.executable, "-m", "weft"]


def read_lines(text: str) -> dict[str, float]:
    """The JSON lines of a measuring program, by name."""
    records = (json.loads(line) for line in text.splitlines() if line.startswith("{"))
    return {record["name"]: float(record["value"]) for record in records}


def describe_machine() -> str:
    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    kernel = ".".join(platform.release().split(".")[:2])
    return f"{os.cpu_count()} cores, {model}, Linux {kernel}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
