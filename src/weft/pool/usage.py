"""Device memory that the sessions of one lease hold together: a page shared with their executors.

Layout (native/executor/lease_usage.h): SLOTS rows of DEVICES u64 counters. A row is written by its executor while that runs,
and by the server before it starts and after it has gone. The executors check the lease's cap against the sum of all rows.
"""

import os
import struct
from collections.abc import Sequence

SLOTS, DEVICES = 64, 64
_ROW = struct.Struct(f"<{DEVICES}Q")


class UsagePage:
    """Owns a memfd until close(). Not thread-safe; used by one event loop."""

    def __init__(self) -> None:
        self.fd = os.memfd_create("weft-lease-usage", os.MFD_CLOEXEC)
        os.ftruncate(self.fd, SLOTS * _ROW.size)

    def charge(self, slot: int, bytes_per_device: Sequence[int]) -> None:
        """What the slot's session holds before its executor counts: a further context's reserve, or nothing."""
        row = [*bytes_per_device, *[0] * (DEVICES - len(bytes_per_device))]
        os.pwrite(self.fd, _ROW.pack(*row), slot * _ROW.size)

    def read(self, slot: int) -> tuple[int, ...]:
        return _ROW.unpack(os.pread(self.fd, _ROW.size, slot * _ROW.size))

    def close(self) -> None:
        os.close(self.fd)
