"""The program's environment, the statistics page, the report, the rules about signals."""

import os
import signal
import struct
from pathlib import Path

import pytest

from weft.base.errors import ProgramNotExecutable, ProgramNotFound
from weft.base.ids import GpuUuid
from weft.base.units import GIB
from weft.model.gpu import Gpu, Slice
from weft.model.path import PathChoice, PathKind
from weft.session.environment import Observers, SessionEndpoint, program_environment
from weft.session.program import exit_status, find_program, should_forward
from weft.session.report import report_lines
from weft.session.signals import Arrived
from weft.session.stats import SessionStats, StatsPage

ENDPOINT = SessionEndpoint(address="h:1", socket_name="weft-1", path=PathKind.SHM, secret="ab" * 32, timeout_s=5.0)


def test_the_shim_comes_first_on_the_library_path_and_only_once() -> None:
    environ = program_environment({"LD_LIBRARY_PATH": "/a:/shim::/b", "X": "y"}, "/shim", ENDPOINT, Observers())
    assert environ["LD_LIBRARY_PATH"] == "/shim:/a:/b"
    assert environ["X"] == "y"


def test_preloads_come_behind_the_callers_own_and_replace_an_outer_sessions() -> None:
    environ = {"LD_PRELOAD": "/user/a.so:/shim/libweft-redirect.so /user/b.so"}
    made = program_environment(environ, "/shim", ENDPOINT, Observers(), ["/shim/libweft-redirect.so", "/shim/libcudart.so.12"])
    assert made["LD_PRELOAD"] == "/user/a.so:/user/b.so:/shim/libweft-redirect.so:/shim/libcudart.so.12"
    assert "LD_PRELOAD" not in program_environment({}, "/shim", ENDPOINT, Observers())


def test_a_path_that_the_loader_would_split_is_preloaded_by_its_name() -> None:
    made = program_environment({}, "/a b", ENDPOINT, Observers(), ["/a b/libweft-redirect.so"])
    assert made["LD_PRELOAD"] == "libweft-redirect.so"


def test_an_outer_session_is_replaced_not_mixed() -> None:
    outer = {"WEFT_TRACE": "/old", "WEFT_PATH": "tcp", "WEFT_SESSION_SECRET": "old", "WEFT_NATIVE_DIR": "/n"}
    environ = program_environment(outer, "/shim", ENDPOINT, Observers(stats="/proc/1/fd/3"))
    assert environ["WEFT_PATH"] == "shm"
    assert environ["WEFT_SESSION_SECRET"] == "ab" * 32
    assert environ["WEFT_STATS"] == "/proc/1/fd/3"
    assert environ["WEFT_TIMEOUT_S"] == "5"
    assert "WEFT_TRACE" not in environ
    assert environ["WEFT_NATIVE_DIR"] == "/n"


def test_the_page_shows_what_a_program_wrote_into_it() -> None:
    page = StatsPage()
    try:
        with Path(page.location).open("r+b") as file:
            file.seek(16)
            file.write(struct.pack("<8Q", *range(1, 9)))
            file.seek(128)
            file.write(b"Weft Software GPU\0")
        assert page.read() == SessionStats(1, 2, 3, 4, 5, 6, 7, 8, "Weft Software GPU", "")
    finally:
        page.close()


def make_slice(cap_bytes: int) -> Slice:
    gpu = Gpu(ordinal=1, name="Weft Software GPU", uuid=GpuUuid("u"), total_bytes=8 * GIB, compute_capability=(8, 0))
    return Slice(gpu=gpu, cap_bytes=cap_bytes, footprint_bytes=cap_bytes)


def test_the_report_says_which_slice_which_path_and_what_crossed() -> None:
    choice = PathChoice(path=PathKind.TCP, reason="asked for with --path")
    stats = SessionStats(calls=1234, frames_sent=5, bytes_sent=2048, frames_received=6, round_trips=7, launches=8, processes=1)
    lines = report_lines([make_slice(4 * GIB)], "h:1", choice, stats)
    assert lines[0] == (
        "served by 50 % of GPU 1 (Weft Software GPU, 4 GiB of 8 GiB), server h:1, path tcp (asked for with --path)"
    )
    assert lines[1:] == [
        "1,234 calls, 8 of them kernel launches, in 1 process",
        "7 round trips; 2 KiB sent in 5 frames, 0 B received in 6 frames",
    ]


def test_a_program_without_cuda_is_told_apart() -> None:
    choice = PathChoice(path=PathKind.SHM, reason="r")
    lines = report_lines([make_slice(8 * GIB)], "h:1", choice, SessionStats())
    assert lines[0].startswith("served by all of GPU 1")
    assert "no session" in lines[1]


def test_only_signals_from_processes_are_passed_on() -> None:
    assert should_forward(Arrived(signal.SIGTERM, from_process=True, sender_pid=1), program_pid=9)
    assert not should_forward(Arrived(signal.SIGINT, from_process=False), program_pid=9)
    assert not should_forward(Arrived(signal.SIGTERM, from_process=True, sender_pid=9), program_pid=9)
    assert not should_forward(Arrived(signal.SIGCHLD, from_process=True, sender_pid=1), program_pid=9)


def test_a_killed_program_has_the_shells_status() -> None:
    assert exit_status(signal.SIGKILL) == 137
    assert exit_status(3 << 8) == 3


def test_programs_are_found_before_a_lease_is_asked_for(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("x")
    find_program("sh")
    with pytest.raises(ProgramNotFound):
        find_program(str(tmp_path / "nothing"))
    with pytest.raises(ProgramNotFound):
        find_program("no-such-program-anywhere")
    for path in (plain, tmp_path):
        with pytest.raises(ProgramNotExecutable):
            find_program(str(path))
    os.chmod(plain, 0o755)
    find_program(str(plain))
