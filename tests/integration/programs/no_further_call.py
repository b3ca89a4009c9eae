"""What must happen without any further call: an asynchronous copy lands in page-locked memory while the program only looks at its
own memory. Then polls an event and forks a child, which has no driver. Prints the sum of what landed."""

import ctypes
import os
import time
from ctypes import byref, c_uint32, c_void_p

from tests.integration.programs import driver

COUNT = 1 << 18
DEADLINE_S = 15


def wait_for(ready: ctypes.Array[c_uint32]) -> None:
    end = time.monotonic() + DEADLINE_S
    while ready[COUNT - 1] == 0:
        if time.monotonic() > end:
            raise SystemExit("the copy never landed")


driver.open_context()
numbers = driver.allocate(4 * COUNT)
driver.write_words(numbers, [0] * COUNT)
memory, stream, event = c_void_p(), c_void_p(), c_void_p()
driver.call("cuMemHostAlloc", byref(memory), ctypes.c_size_t(4 * COUNT), 0)
landed = (c_uint32 * COUNT).from_address(memory.value or 0)
ctypes.memset(landed, 0, 4 * COUNT)
driver.call("cuStreamCreate", byref(stream), 1)
driver.increment(driver.load_increment(), numbers, COUNT, rounds=3)
driver.call("cuCtxSynchronize")
driver.call("cuMemcpyDtoHAsync_v2", memory, numbers, ctypes.c_size_t(4 * COUNT), stream)
wait_for(landed)

driver.call("cuEventCreate", byref(event), 0)
driver.call("cuEventRecord", event, stream)
end = time.monotonic() + DEADLINE_S
while driver.library.cuEventQuery(event) == driver.NOT_READY and time.monotonic() < end:
    pass
driver.call("cuEventQuery", event)

child = os.fork()
if child == 0:
    os._exit(0 if driver.library.cuCtxSynchronize() == 3 else 1)
assert os.waitpid(child, 0)[1] == 0, "a forked child must get NOT_INITIALIZED"
driver.call("cuCtxSynchronize")
print(sum(landed))
