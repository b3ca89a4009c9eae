"""Leaves a stream waiting for a host function that never returns, with work behind it, and dies without a word."""

import ctypes
import os
import signal
import threading
from ctypes import byref, c_uint, c_void_p

from tests.integration.programs import driver

WAITS_S = 20

begun = threading.Event()


def wait_for_ever(_: object) -> None:
    begun.set()
    threading.Event().wait()


never_returns = ctypes.CFUNCTYPE(None, c_void_p)(wait_for_ever)

driver.open_context()
numbers = driver.allocate(4096)
stream = c_void_p()
driver.call("cuStreamCreate", byref(stream), 1)
driver.call("cuLaunchHostFunc", stream, never_returns, None)
driver.call("cuMemsetD32Async", numbers, c_uint(7), ctypes.c_size_t(1024), stream)
if not begun.wait(WAITS_S):
    raise SystemExit("the host function was never called")
if driver.library.cuStreamQuery(stream) != driver.NOT_READY:
    raise SystemExit("the stream does not wait for its host function")
os.kill(os.getpid(), signal.SIGKILL)
