"""Bytes, fractions and addresses as people write them. Bytes are int everywhere; nothing here rounds silently."""

import re
from fractions import Fraction

KIB, MIB, GIB, TIB = 1 << 10, 1 << 20, 1 << 30, 1 << 40
_SUFFIXES = {
    "": 1, "b": 1,
    "k": KIB, "kib": KIB, "kb": 10**3,
    "m": MIB, "mib": MIB, "mb": 10**6,
    "g": GIB, "gib": GIB, "gb": 10**9,
    "t": TIB, "tib": TIB, "tb": 10**12,
}  # fmt: skip
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")


def parse_bytes(text: str, bare_unit_bytes: int = 1) -> int:
    """`8GiB`, `512MB`, `1.5G`; a number without a unit counts in bare_unit_bytes. Raises ValueError."""
    match = _SIZE.fullmatch(text)
    if match is None or match[2].lower() not in _SUFFIXES:
        raise ValueError(f"not a size: {text!r} (write 8GiB, 512MiB, 4096)")
    unit = _SUFFIXES[match[2].lower()] if match[2] else bare_unit_bytes
    return int(Fraction(match[1]) * unit)


def format_bytes(count: int) -> str:
    """With the largest binary unit that leaves at least 1, two digits after the point at most: `4 GiB`, `1.5 MiB`."""
    for unit, name in ((TIB, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if count >= unit:
            return f"{count / unit:.2f}".rstrip("0").rstrip(".") + f" {name}"
    return f"{count} B"


def parse_address(text: str) -> tuple[str, int]:
    """`host:port` or `[v6]:port`. Raises ValueError."""
    host, separator, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if not separator or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"not an address: {text!r} (write host:port)")
    return host, int(port)


def format_address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
