"""What `weft run --stats` says after the program ended. Pure."""

from collections.abc import Sequence

from weft.base.units import format_bytes
from weft.model.gpu import Slice
from weft.model.path import PathChoice
from weft.session.stats import SessionStats


def report_lines(slices: Sequence[Slice], server: str, choice: PathChoice, stats: SessionStats) -> list[str]:
    lines = [f"served by {describe_slice(part)}, server {server}, path {choice.path} ({choice.reason})" for part in slices]
    if stats.processes == 0:
        return [*lines, "the program opened no session: it made no CUDA call that needs a GPU"]
    processes = "1 process" if stats.processes == 1 else f"{stats.processes} processes"
    sent = f"{format_bytes(stats.bytes_sent)} sent in {stats.frames_sent:,} frames"
    received = f"{format_bytes(stats.bytes_received)} received in {stats.frames_received:,} frames"
    return [
        *lines,
        f"{stats.calls:,} calls, {stats.launches:,} of them kernel launches, in {processes}",
        f"{stats.round_trips:,} round trips; {sent}, {received}",
    ]


def describe_slice(part: Slice) -> str:
    gpu = part.gpu
    whole = part.footprint_bytes == gpu.total_bytes
    share = "all" if whole else f"{part.share * 100:.4g} %"
    return f"{share} of GPU {gpu.ordinal} ({gpu.name}, {format_bytes(part.cap_bytes)} of {format_bytes(gpu.total_bytes)})"
