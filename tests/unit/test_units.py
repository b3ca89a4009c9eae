"""Sizes and addresses as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.base.units import GIB, MIB, format_address, format_bytes, parse_address, parse_bytes


@pytest.mark.parametrize(
    ("text", "expected"),
    [("4GiB", 4 * GIB), ("512MB", 512 * 10**6), ("1.5G", 3 * GIB // 2), ("4096", 4096), (" 2 mib ", 2 * MIB), ("7B", 7)],
)
def test_sizes_have_binary_and_decimal_units(text: str, expected: int) -> None:
    assert parse_bytes(text) == expected


def test_a_bare_number_counts_in_the_callers_unit() -> None:
    assert parse_bytes("4096", bare_unit_bytes=MIB) == 4 * GIB


@pytest.mark.parametrize("text", ["", "GiB", "-1", "1XB", "1 2", "1e3", "0x10", "NaN"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a size"):
        parse_bytes(text)


@pytest.mark.parametrize(("count", "expected"), [(0, "0 B"), (1023, "1023 B"), (4 * GIB, "4 GiB"), (3 * MIB // 2, "1.5 MiB")])
def test_sizes_are_written_with_the_largest_unit(count: int, expected: str) -> None:
    assert format_bytes(count) == expected


@given(st.integers(1, 1023), st.sampled_from(["KiB", "MiB", "GiB"]))
def test_a_written_size_reads_back(number: int, unit: str) -> None:
    size = parse_bytes(f"{number}{unit}")
    assert parse_bytes(format_bytes(size)) == size


@pytest.mark.parametrize("text", ["127.0.0.1:4410", "host:1", "[::1]:65535"])
def test_addresses_read_back(text: str) -> None:
    assert format_address(*parse_address(text)) == text


@pytest.mark.parametrize("text", ["", "host", ":1", "host:", "host:65536", "host:-1", "host:x"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not an address"):
        parse_address(text)
