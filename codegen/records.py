"""The typed records that the generators read, loaded from spec/. Nothing here writes text."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
ABI_PATH = "spec/cuda/abi.json"
FRAMES_PATH = "spec/wire/frames.toml"
CALLS_PATH = "spec/cuda/calls.toml"
ERRORS_PATH = "spec/cuda/errors.toml"
LOCK_PATH = "spec/wire/opcodes.lock"


class SpecError(Exception):
    """The spec contradicts itself or the headers; the message names the record."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of a driver symbol as C declares it."""

    declaration: str
    name: str

    @property
    def type(self) -> str:
        """The type alone: the declaration without the name (arrays and callbacks do not occur by value)."""
        return re.sub(rf"\b{self.name}(\[\])?$", "", self.declaration).strip()


@dataclass(frozen=True)
class Variant:
    """A symbol that cuGetProcAddress hands out for its name from CUDA version `since` on."""

    since: int
    symbol: str
    per_thread: bool


@dataclass(frozen=True, eq=False)  # hashed by identity, for caches
class Abi:
    """spec/cuda/abi.json: the binary interface of the driver library."""

    cuda_version: int
    names: dict[str, tuple[Variant, ...]]
    symbols: dict[str, tuple[Parameter, ...]]
    macros: dict[str, str]
    types: tuple[dict[str, Any], ...]

    def all_symbols(self) -> list[str]:
        """Every exported symbol, sorted: with and without known parameters."""
        variants = {variant.symbol for entries in self.names.values() for variant in entries}
        return sorted(variants | set(self.symbols))

    def enum(self, alias: str) -> list[tuple[str, int]]:
        for record in self.types:
            if record.get("alias") == alias and "values" in record:
                return [(name, value) for name, value in record["values"]]
        raise SpecError(f"{ABI_PATH}: no enum {alias}")


@cache
def load_abi() -> Abi:
    raw = json.loads((ROOT / ABI_PATH).read_text())
    return Abi(
        cuda_version=raw["cuda_version"],
        names={base: tuple(Variant(**entry) for entry in entries) for base, entries in raw["names"].items()},
        symbols={name: tuple(Parameter(*p) for p in parameters) for name, parameters in raw["symbols"].items()},
        macros=raw["macros"],
        types=tuple(raw["types"]),
    )


def read_toml(path: str) -> dict[str, Any]:
    with (ROOT / path).open("rb") as file:
        return tomllib.load(file)
