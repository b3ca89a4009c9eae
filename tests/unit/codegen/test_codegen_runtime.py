"""The runtime's generators: every exported name is served, contradictions in the spec are refused."""

from __future__ import annotations

import re

import pytest

from codegen.records import SpecError
from codegen.runtime_entries import render_entries, render_exports
from codegen.runtime_records import MAJORS, Treatment, add, load_major, load_treatments


@pytest.mark.parametrize("number", MAJORS)
def test_every_exported_name_is_defined_once(number: str) -> None:
    major = load_major(number)
    defined = re.findall(
        r"^(?:cudaError_t|const char \*|struct cudaChannelFormatDesc) (\w+)\(", render_entries(major), re.MULTILINE
    )
    bare = [name for name, treatment in load_treatments(number).items() if treatment.kind == "bare"]
    variants = [name for name in major.exports if name.removesuffix("_ptsz") in bare and name not in bare]
    assert sorted([*defined, *bare, *variants]) == sorted(major.exports)
    assert variants == []


def test_a_per_thread_variant_puts_in_the_threads_stream() -> None:
    text = render_entries(load_major("13"))
    assert "cuStreamSynchronize(pass<CUstream>(thread_stream(stream)))" in text
    assert "api::cudaMemcpy(dst, src, count, kind, CU_STREAM_PER_THREAD)" in text
    assert "api::cudaMemcpy(dst, src, count, kind, nullptr)" in text


def test_majors_differ_where_the_headers_do() -> None:
    assert load_treatments("12")["cudaGraphGetEdges"] == Treatment("forward", "cuGraphGetEdges")
    assert load_treatments("13")["cudaGraphGetEdges"] == Treatment("forward", "cuGraphGetEdges_v2")
    assert "cudaGetDeviceProperties_v2" not in load_treatments("13")


def test_what_has_no_treatment_says_so_by_its_name() -> None:
    assert 'cudaError_t cudaGreenCtxCreate() { return finish(unsupported("cudaGreenCtxCreate")); }' in render_entries(
        load_major("13")
    )


def test_exports_have_the_version_of_the_library() -> None:
    text = render_exports(load_major("12"))
    assert text.startswith("libcudart.so.12 {\n  global:\n")
    assert "    cudaMalloc;\n" in text
    assert text.endswith("  local:\n    *;\n};\n")


def test_a_call_listed_twice_is_refused() -> None:
    found = {"cudaMalloc": Treatment("hand")}
    with pytest.raises(SpecError, match="cudaMalloc is listed twice"):
        add(found, "cudaMalloc", Treatment("plain"))


def test_sizes_that_programs_depend_on() -> None:
    sizes = {
        number: {record["struct"]: record["size_bytes"] for record in load_major(number).types if record.get("struct")}
        for number in MAJORS
    }
    assert (sizes["12"]["cudaDeviceProp"], sizes["13"]["cudaDeviceProp"]) == (1032, 1008)
    assert (sizes["12"]["cudaPointerAttributes"], sizes["13"]["cudaPointerAttributes"]) == (24, 88)
