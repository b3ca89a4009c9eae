"""Managed and mapped arrays of numba-cuda: one array for host and device, checked after each hand-over. Prints one JSON line."""

import json

import numpy as np
from numba import cuda


@cuda.jit
def scale_and_add(values, factor, summand):
    index = cuda.grid(1)
    if index < values.size:
        values[index] = values[index] * factor + summand


def hand_over(values):
    """The host fills, the device changes, the host changes one word, the device goes on."""
    values[:] = np.arange(values.size, dtype=np.float32)
    expected = np.arange(values.size, dtype=np.float32)
    blocks = -(-values.size // 128)
    for turn in range(4):
        scale_and_add[blocks, 128](values, 2.0, 1.0)
        cuda.synchronize()
        expected = expected * np.float32(2) + np.float32(1)
        assert values[values.size // 3] == expected[values.size // 3], turn
        values[turn * 1000] = expected[turn * 1000] = -turn
    scale_and_add[blocks, 128](values, 1.0, 1.0)
    cuda.synchronize()
    expected += np.float32(1)
    assert np.array_equal(values, expected)
    return float(values[:100].sum())


def main():
    managed = hand_over(cuda.managed_array(200_000, np.float32))
    mapped = hand_over(cuda.mapped_array(200_000, np.float32))
    assert managed == mapped
    print(json.dumps({"managed": managed, "mapped": mapped}))


if __name__ == "__main__":
    main()
