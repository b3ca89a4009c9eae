"""Signals as records with their senders. The process's signals are blocked in all threads and taken one by one by one thread.

Enter before any other thread exists, so that all of them inherit the mask. Must not decide what a signal means.
"""

import os
import signal
import struct
import threading
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import anyio

HANDLED = frozenset(
    {
        signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2,
        signal.SIGTSTP, signal.SIGCONT, signal.SIGCHLD,
    }
)  # fmt: skip
ENDING = frozenset({signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP})
SENT_BY_PROCESS = frozenset({0, -1, -6})  # SI_USER, SI_QUEUE, SI_TKILL
_RECORD = struct.Struct("<iii")


@dataclass(frozen=True)
class Arrived:
    """One signal: its number, whether a process (not the kernel or the terminal) sent it, and which."""

    number: int
    from_process: bool = False
    sender_pid: int = 0


class Interrupted(Exception):
    """A signal asked to end before the program started."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


class SignalPipe:
    """Context manager. `original_mask` is what the program must start with."""

    def __enter__(self) -> Self:
        self.original_mask = signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED)
        self._read_fd, self._write_fd = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._read_fd, False)
        # A daemon: it waits in sigwaitinfo for ever, and ends with the process.
        threading.Thread(target=self._collect, daemon=True, name="weft-signals").start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        os.close(self._read_fd)

    async def receive(self) -> Arrived:
        while True:
            try:
                number, from_process, sender = _RECORD.unpack(os.read(self._read_fd, _RECORD.size))
            except BlockingIOError:
                await anyio.wait_readable(self._read_fd)
                continue
            return Arrived(number, bool(from_process), sender)

    async def interrupt(self) -> None:
        """Runs beside the preparations; raises Interrupted when a signal asks to end."""
        while True:
            arrived = await self.receive()
            if arrived.number in ENDING:
                raise Interrupted(arrived.number)

    def _collect(self) -> None:
        while True:
            info = signal.sigwaitinfo(HANDLED)
            record = _RECORD.pack(info.si_signo, info.si_code in SENT_BY_PROCESS, info.si_pid)
            try:
                os.write(self._write_fd, record)
            except OSError:
                return
