"""A numba-cuda program that checks its own numbers: shared memory, atomics, streams and events. Prints one JSON line."""

import json

import numpy as np
from numba import cuda, float32

BLOCK = 128
BINS = 64


@cuda.jit
def block_sums(values, sums):
    shared = cuda.shared.array(BLOCK, float32)
    lane, index = cuda.threadIdx.x, cuda.grid(1)
    shared[lane] = values[index] if index < values.size else 0.0
    cuda.syncthreads()
    step = BLOCK // 2
    while step > 0:
        if lane < step:
            shared[lane] += shared[lane + step]
        cuda.syncthreads()
        step //= 2
    if lane == 0:
        sums[cuda.blockIdx.x] = shared[0]


@cuda.jit
def histogram(values, bins):
    for index in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        cuda.atomic.add(bins, values[index] % BINS, 1)


@cuda.jit
def scale_and_add(values, factor, summand):
    index = cuda.grid(1)
    if index < values.size:
        values[index] = values[index] * factor + summand


def reduce(random):
    values = random.integers(0, 100, 10_000).astype(np.float32)
    blocks = -(-values.size // BLOCK)
    sums = cuda.device_array(blocks, np.float32)
    block_sums[blocks, BLOCK](cuda.to_device(values), sums)
    return float(sums.copy_to_host().sum()), float(values.sum())


def count(random):
    values = random.integers(0, 1 << 20, 20_000).astype(np.int32)
    bins = cuda.to_device(np.zeros(BINS, np.int32))
    histogram[16, BLOCK](cuda.to_device(values), bins)
    return bins.copy_to_host().tolist(), np.bincount(values % BINS, minlength=BINS).tolist()


def overlap():
    """Four streams with pinned buffers, each a chain of copies and kernels; the last stream waits for an event of the first."""
    streams = [cuda.stream() for _ in range(4)]
    hosts = [cuda.pinned_array(4096, np.float32) for _ in streams]
    devices = []
    start, done = cuda.event(), cuda.event()
    start.record(streams[0])
    for number, (stream, host) in enumerate(zip(streams, hosts, strict=True)):
        host[:] = number
        device = cuda.to_device(host, stream=stream)
        for _ in range(5):
            scale_and_add[32, 128, stream](device, 2.0, 1.0)
        devices.append(device)
    done.record(streams[0])
    done.wait(streams[3])
    for stream, host, device in zip(streams, hosts, devices, strict=True):
        device.copy_to_host(host, stream=stream)
    for stream in streams:
        stream.synchronize()
    results = [float(host[0]) for host in hosts]
    assert all((host == host[0]).all() for host in hosts)
    return results, [number * 32.0 + 31.0 for number in range(4)], cuda.event_elapsed_time(start, done)


def main():
    random = np.random.default_rng(11)
    sums, bins, (streams, expected, elapsed_ms) = reduce(random), count(random), overlap()
    assert sums[0] == sums[1], sums
    assert bins[0] == bins[1]
    assert streams == expected, streams
    assert elapsed_ms >= 0.0
    print(json.dumps({"sum": sums[0], "bins": len(bins[0]), "streams": streams}))


if __name__ == "__main__":
    main()
