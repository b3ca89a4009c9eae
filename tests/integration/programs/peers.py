"""Copies between two devices of one lease, each with its own context, and prints what arrived."""

from ctypes import byref, c_int, c_size_t, c_void_p

from tests.integration.programs import driver

driver.call("cuInit", 0)
contexts, memory = [], []
for ordinal in range(2):
    context, device = c_void_p(), c_int()
    driver.call("cuDeviceGet", byref(device), ordinal)
    driver.call("cuDevicePrimaryCtxRetain", byref(context), device)
    driver.call("cuCtxSetCurrent", context)
    contexts.append(context)
    memory.append(driver.allocate(4 << 20))
    driver.write_words(memory[ordinal], [ordinal + 1] * 1000)
words = c_size_t(4000)
driver.call("cuMemcpyPeer", memory[1], contexts[1], memory[0], contexts[0], words)
driver.synchronize()
first = driver.read_words(memory[1], 1000)
driver.increment(driver.load_increment(), memory[1], 1000)
driver.call("cuMemcpyPeerAsync", memory[0], contexts[0], memory[1], contexts[1], words, c_void_p())
driver.synchronize()
driver.call("cuCtxSetCurrent", contexts[0])
second = driver.read_words(memory[0], 1000)
print(set(first), set(second))
