"""The typed records of the CUDA runtime: spec/cuda/runtime_abi.json and runtime.toml. Nothing here writes text."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from codegen.records import ROOT, Parameter, SpecError, read_toml

RUNTIME_ABI_PATH = "spec/cuda/runtime_abi.json"
RUNTIME_PATH = "spec/cuda/runtime.toml"
MAJORS = ("12", "13")
VARIANT = re.compile(r"_(ptds|ptsz)$")


@dataclass(frozen=True)
class RuntimeCall:
    """One exported name as the runtime's header of its major declares it."""

    name: str
    returns: str
    parameters: tuple[Parameter, ...]

    @property
    def streams(self) -> tuple[str, ...]:
        return tuple(p.name for p in self.parameters if p.type == "cudaStream_t")


@dataclass(frozen=True, eq=False)  # hashed by identity, for caches
class Major:
    """What one major of the runtime declares and exports."""

    number: str
    version: int
    types: tuple[dict[str, Any], ...]
    calls: dict[str, RuntimeCall]
    exports: dict[str, str]

    def has_variant(self, name: str) -> bool:
        return f"{name}_ptsz" in self.exports or f"{name}_ptds" in self.exports

    def errors(self) -> list[tuple[str, int]]:
        for record in self.types:
            if record.get("enum") == "cudaError":
                return [(name, value) for name, value in record["values"]]
        raise SpecError(f"{RUNTIME_ABI_PATH}: no enum cudaError")


@dataclass(frozen=True)
class Treatment:
    """How a call is served. kind: forward, question, hand, plain, bare or stub; driver: the symbol of the first two."""

    kind: str
    driver: str = ""
    topic: str = ""


@cache
def load_major(number: str) -> Major:
    raw = json.loads((ROOT / RUNTIME_ABI_PATH).read_text())["majors"][number]
    calls = {
        name: RuntimeCall(name, value["returns"], tuple(Parameter(*p) for p in value["parameters"]))
        for name, value in raw["functions"].items()
    }
    return Major(number, raw["version"], tuple(raw["types"]), calls, raw["exports"])


@cache
def load_treatments(number: str) -> dict[str, Treatment]:
    """base name -> treatment, for everything the major exports that is not a stub. Names of neither major are refused."""
    spec = read_toml(RUNTIME_PATH)
    found: dict[str, Treatment] = {}
    for kind in ("forward", "question"):
        for name, target in spec[kind].items():
            symbol = target if isinstance(target, str) else target[number]
            add(found, name, Treatment("hand", topic="capture") if symbol == "hand" else Treatment(kind, symbol))
    for topic, names in spec["hand"].items():
        for name in names:
            add(found, name, Treatment("hand", topic=topic))
    for kind in ("plain", "bare"):
        for name in spec[kind]["names"]:
            add(found, name, Treatment(kind))
    known = {VARIANT.sub("", name) for major in MAJORS for name in load_major(major).exports} | {
        name for major in MAJORS for name in load_major(major).exports
    }
    if unknown := sorted(set(found) - known):
        raise SpecError(f"{RUNTIME_PATH}: no major exports {', '.join(unknown)}")
    exported = load_major(number).exports
    return {name: treatment for name, treatment in found.items() if name in exported}


def add(found: dict[str, Treatment], name: str, treatment: Treatment) -> None:
    if name in found:
        raise SpecError(f"{RUNTIME_PATH}: {name} is listed twice")
    found[name] = treatment


def error_texts() -> dict[str, str]:
    texts: dict[str, str] = read_toml(RUNTIME_PATH)["errors"]
    known = {name for major in MAJORS for name, _ in load_major(major).errors()}
    if unknown := sorted(set(texts) - known):
        raise SpecError(f"{RUNTIME_PATH}: no such error: {', '.join(unknown)}")
    return texts
