"""Tables, JSON and names on stdout. JSON is the type itself and stable; tables are for people."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

OUTPUT_HELP = "table, json or name"
T = TypeVar("T")


def print_rows(
    rows: Sequence[T], output: str, header: Sequence[str], cells: Callable[[T], Sequence[str]], name: Callable[[T], str]
) -> None:
    if output == "json":
        print(msgspec.json.format(msgspec.json.encode(rows), indent=2).decode())
    elif output == "name":
        for row in rows:
            print(name(row))
    else:
        print_table(header, [cells(row) for row in rows])


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(line[column]) for line in (header, *rows)) for column in range(len(header))]
    for line in (header, *rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
