"""spec/cuda/runtime*.{json,toml} -> docs/reference/cuda-runtime-calls.md: what Weft does with each call of the runtime."""

from __future__ import annotations

from codegen.runtime_records import MAJORS, VARIANT, Treatment, load_major, load_treatments

HEAD = """\
# CUDA runtime calls

What Weft's `libcudart.so.12` and `libcudart.so.13` do with each call that NVIDIA's export. Written by `python -m codegen` from
`spec/cuda/runtime.toml`; how it works: [cudart](../design/cudart.md).

* A driver call's name: the runtime call is that driver call with the same arguments. What becomes of it is in
  [CUDA driver calls](cuda-calls.md); if it is not supported there, the runtime call answers cudaErrorNotSupported too.
* **written**: written by hand, mostly around several driver calls.
* **no**: answers cudaErrorNotSupported, and the first such call is logged.

Variants for per-thread default streams (`_ptsz`, `_ptds`) are served wherever the call is.

{counts}

| call | {majors} |
|---|{rules}|
"""


def build() -> str:
    served = {number: load_treatments(number) for number in MAJORS}
    names = sorted({name for number in MAJORS for name in base_names(number)})
    rows = "".join(row(name, served) for name in names)
    counts = "; ".join(count(number, served[number]) for number in MAJORS) + "."
    majors = " | ".join(f"CUDA {number}" for number in MAJORS)
    return HEAD.format(counts=counts, majors=majors, rules="|".join("---" for _ in MAJORS)) + rows


def base_names(number: str) -> list[str]:
    """Without the variants, whose base is exported too."""
    exports = load_major(number).exports
    return [name for name in exports if VARIANT.sub("", name) == name or VARIANT.sub("", name) not in exports]


def count(number: str, served: dict[str, Treatment]) -> str:
    names = base_names(number)
    return f"CUDA {number}: {sum(name in served for name in names)} of {len(names)} calls are served"


def row(name: str, served: dict[str, dict[str, Treatment]]) -> str:
    cells = " | ".join(cell(name, number, served[number]) for number in MAJORS)
    return f"| `{name}` | {cells} |\n"


def cell(name: str, number: str, served: dict[str, Treatment]) -> str:
    if name not in load_major(number).exports:
        return ""
    treatment = served.get(name)
    if treatment is None:
        return "no"
    return f"`{treatment.driver}`" if treatment.driver else "written"
