"""Computes a picture of the Mandelbrot set with numba-cuda and writes it as a PNG. Nothing in here knows of Weft.

weft run -p 0.25 --stats -- python examples/mandelbrot.py --output mandelbrot.png
"""

import argparse
import json
import struct
import sys
import time
import zlib
from pathlib import Path

import numpy as np
from numba import cuda

LEFT, TOP, SPAN = -2.2, -1.2, 2.4
THREADS = (16, 16)


@cuda.jit
def escape_times(left: float, top: float, pixel: float, limit: int, counts: np.ndarray) -> None:
    """counts[y, x]: iterations until |z| > 2, at most `limit`, for the point of that pixel's corner."""
    x, y = cuda.grid(2)
    if y >= counts.shape[0] or x >= counts.shape[1]:
        return
    real, imaginary = left + x * pixel, top + y * pixel
    a, b = 0.0, 0.0
    count = 0
    while count < limit and a * a + b * b <= 4.0:
        a, b = a * a - b * b + real, 2.0 * a * b + imaginary
        count += 1
    counts[y, x] = count


def compute(width: int, height: int, limit: int) -> np.ndarray:
    counts = cuda.device_array((height, width), np.uint32)
    blocks = (-(-width // THREADS[0]), -(-height // THREADS[1]))
    escape_times[blocks, THREADS](LEFT, TOP, SPAN / height, limit, counts)
    return counts.copy_to_host()


def encode_png(counts: np.ndarray, limit: int) -> bytes:
    """An 8-bit RGB picture; points of the set are black."""
    share = np.sqrt(counts / limit)
    colours = np.stack([share * 255, share**2 * 200, 90 + share * 130], axis=-1)
    colours[counts == limit] = 0
    height, width = counts.shape
    rows = np.zeros((height, 1 + width * 3), np.uint8)  # each row is led by its filter, 0: none
    rows[:, 1:] = colours.astype(np.uint8).reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes())), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--width", type=int, default=600)
    parser.add_argument("--height", type=int, default=480)
    parser.add_argument("--limit", type=int, default=100, help="iterations at most")
    parser.add_argument("--output", type=Path, default=Path("mandelbrot.png"))
    parser.add_argument("--json", action="store_true", help="print the results as one JSON line")
    options = parser.parse_args()

    started = time.perf_counter()
    counts = compute(options.width, options.height, options.limit)
    options.output.write_bytes(encode_png(counts, options.limit))
    inside = int((counts == options.limit).sum())
    if options.json:
        print(json.dumps({"inside": inside, "iterations": int(counts.sum()), "pixels": counts.size}))
    else:
        seconds = time.perf_counter() - started
        print(f"{options.output}: {options.width}x{options.height} pixels, {inside} inside the set, {seconds:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
