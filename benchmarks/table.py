"""Turns the newest results of `make bench` into the table of the README (between its two marker comments)."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "latest.jsonl"
START, END = "<!-- benchmarks -->", "<!-- /benchmarks -->"

# Row of the table: what it says, the figure's name, the goal.
ROWS = (
    ("asynchronous launch, p50 in the caller", "remoting.launch_p50_us", "<= 1 us"),
    ("asynchronous launch, p99 in the caller", "remoting.launch_p99_us", "<= 20 us"),
    ("launches executed per second, one thread", "remoting.launches_per_s", ">= 500,000"),
    ("launch to executor on an idle stream, p50", "remoting.launch_to_executor_p50_us", "<= half a ping-pong + 30 us"),
    ("waiting call over a plain ping-pong", "remoting.call_overhead_us", "<= 10 us"),
    ("waiting call after 1 ms of idleness", "remoting.sync_after_1ms_idle_us", "reported"),
    ("H2D 256 MiB over the plain limit", "remoting.h2d_ratio", ">= 0.8 shm, 0.9 tcp"),
    ("D2H 256 MiB over the plain limit", "remoting.d2h_ratio", ">= 0.8 shm, 0.9 tcp"),
)
SINGLE_ROWS = (
    ("waits from cuInit to the first launch", "remoting.round_trips_to_first_launch", "<= 3"),
    ("waits of a training step", "remoting.round_trips_per_step", "1"),
    ("`weft run -- true`, milliseconds", "run.overhead_ms", "<= 300"),
    ("software GPU, million PTX thread-instructions/s", "swgpu.matmul_minst_per_s", ">= 300"),
)


def main() -> int:
    lines = RESULTS.read_text().splitlines()
    header = json.loads(lines[0])
    values = {record["name"]: record["value"] for record in map(json.loads, lines[1:])}
    readme = ROOT / "README.md"
    text = readme.read_text()
    before, _, rest = text.partition(START)
    after = rest.partition(END)[2] if END in rest else rest
    readme.write_text(f"{before}{START}\n{render(header, values)}\n{END}{after}")
    return 0


def render(header: Mapping[str, str], values: Mapping[str, float]) -> str:
    conditions = f"{header['machine']}, {header['date']}"
    lines = [
        f"Measured with `{header['command']}` against a driver that accepts everything and really copies ({conditions}):",
        "",
        "| figure | shm | tcp | goal |",
        "|---|---|---|---|",
    ]
    for title, name, goal in ROWS:
        lines.append(f"| {title} | {show(values, f'{name}.shm')} | {show(values, f'{name}.tcp')} | {goal} |")
    lines += [f"| {title} | {show(values, name)} | | {goal} |" for title, name, goal in SINGLE_ROWS]
    return "\n".join(lines)


def show(values: Mapping[str, float], name: str) -> str:
    value = values.get(name)
    if value is None:
        return "not measured"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


if __name__ == "__main__":
    sys.exit(main())
