"""Says `ready`, then increments and waits until a call fails; prints the error's number and how long that took."""

import os
import time

from tests.integration.programs import driver

driver.open_context()
numbers = driver.allocate(4 * 256)
function = driver.load_increment()
driver.write_words(numbers, [0] * 256)
print("ready", os.getpid(), flush=True)
while True:
    started = time.monotonic()
    try:
        driver.increment(function, numbers, 256)
        driver.synchronize()
    except driver.CudaError as error:
        print("failed", error.code, f"{time.monotonic() - started:.3f}", flush=True)
        break
try:
    driver.synchronize()
except driver.CudaError as error:
    print("again", error.code, flush=True)
