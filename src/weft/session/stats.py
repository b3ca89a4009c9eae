"""The page that the program's shim adds its counters to. Layout: native/shim/stats_page.h, the same offsets.

It is a memfd of this process, opened by the program through /proc, so that nothing lies in the file system.
"""

import mmap
import os
import struct
from dataclasses import dataclass

MAGIC = 0x3153544154465457
VERSION = 1
PAGE_BYTES = 4096
_COUNTERS = struct.Struct("<10Q")
_TEXT_OFFSET, _TEXT_BYTES = 128, 256


@dataclass(frozen=True)
class SessionStats:
    """Sums over all processes of the program. round_trips: calls that waited for an answer."""

    calls: int = 0
    frames_sent: int = 0
    bytes_sent: int = 0
    frames_received: int = 0
    bytes_received: int = 0
    round_trips: int = 0
    launches: int = 0
    processes: int = 0
    device: str = ""
    path: str = ""


class StatsPage:
    """Owns the memfd and its mapping until close()."""

    def __init__(self) -> None:
        self._fd = os.memfd_create("weft-stats", os.MFD_CLOEXEC)
        os.ftruncate(self._fd, PAGE_BYTES)
        self._map = mmap.mmap(self._fd, PAGE_BYTES)
        self._map[:16] = struct.pack("<QQ", MAGIC, VERSION)

    @property
    def location(self) -> str:
        """Where the program's processes find it; valid while this process lives."""
        return f"/proc/{os.getpid()}/fd/{self._fd}"

    def read(self) -> SessionStats:
        return decode_page(self._map[:])

    def close(self) -> None:
        self._map.close()
        os.close(self._fd)


def decode_page(data: bytes) -> SessionStats:
    _, _, *counters = _COUNTERS.unpack_from(data)
    texts = [
        data[start : start + _TEXT_BYTES].split(b"\0")[0].decode(errors="replace")
        for start in (_TEXT_OFFSET, _TEXT_OFFSET + _TEXT_BYTES)
    ]
    return SessionStats(*counters, *texts)
