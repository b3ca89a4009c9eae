"""What an executable says about its CUDA runtime, from files put together here."""

import struct
from pathlib import Path

import pytest

from weft.base.errors import RuntimeInside
from weft.session.executable import Executable, inspect_program, preloads, read_executable

SECTION = struct.Struct("<IIQQQQIIQQ")


def elf(sections: list[str], needed: tuple[str, ...] = ()) -> bytes:
    """A file with these sections; .dynamic and .dynstr are added if libraries are needed."""
    strings = b"\0" + b"".join(name.encode() + b"\0" for name in needed)
    dynamic = b"".join(struct.pack("<qQ", 1, strings.index(name.encode() + b"\0")) for name in needed) + bytes(16)
    contents = {".dynamic": dynamic, ".dynstr": strings} if needed else {}
    names = ["", *sections, *contents, ".shstrtab"]
    table = b"".join(name.encode() + b"\0" for name in names)
    contents[".shstrtab"] = table
    data, rows = b"", b""
    for name in names:
        content = contents.get(name, b"")
        offset = table.index(name.encode() + b"\0") if name else 0
        link = names.index(".dynstr") if name == ".dynamic" else 0
        rows += SECTION.pack(offset, 1, 0, 0, 64 + len(data), len(content), link, 0, 8, 0)
        data += content
    header = (
        b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0, 0, 64 + len(data), 0, 64, 0, 0, 64, 0, 0)
    )
    header = header[:58] + struct.pack("<HHH", 64, len(names), len(names) - 1)
    return header + data + rows


def write(folder: Path, content: bytes) -> str:
    path = folder / "program"
    path.write_bytes(content)
    path.chmod(0o755)
    return str(path)


def test_a_program_without_device_code_needs_nothing(tmp_path: Path) -> None:
    found = inspect_program(write(tmp_path, elf([".text", ".symtab"])))
    assert found == Executable(has_symbols=True)


def test_a_program_with_the_shared_runtime_names_it(tmp_path: Path) -> None:
    found = inspect_program(write(tmp_path, elf([".nvFatBinSegment"], ("libc.so.6", "libcudart.so.12"))))
    assert found.shared_runtime == "libcudart.so.12"
    assert found.needed == ("libc.so.6", "libcudart.so.12")


def test_a_program_with_the_runtime_inside_is_found_by_its_symbols(tmp_path: Path) -> None:
    found = inspect_program(write(tmp_path, elf([".nvFatBinSegment", ".symtab"], ("libc.so.6",))))
    assert found.has_device_code
    assert found.shared_runtime is None


def test_a_stripped_program_with_the_runtime_inside_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, elf([".nvFatBinSegment"], ("libc.so.6",)))
    with pytest.raises(RuntimeInside) as raised:
        inspect_program(path)
    assert path in str(raised.value)


@pytest.mark.parametrize("content", [b"", b"#!/bin/sh\n", b"\x7fELF\x01rest", b"\x7fELF\x02", elf([".text"])[:-40]])
def test_what_cannot_be_read_is_left_to_whoever_starts_it(tmp_path: Path, content: bytes) -> None:
    assert read_executable(write(tmp_path, content)) == Executable()


def test_every_cut_of_a_file_is_read_without_an_exception(tmp_path: Path) -> None:
    whole = elf([".nvFatBinSegment", ".symtab"], ("libcudart.so.13",))
    for size in range(0, len(whole), 7):
        read_executable(write(tmp_path, whole[:size]))


def test_the_runtime_is_preloaded_by_its_path_behind_the_redirection(tmp_path: Path) -> None:
    for name in ("libweft-redirect.so", "libcudart.so.13"):
        (tmp_path / name).touch()
    program = Executable(has_device_code=True, needed=("libcudart.so.13",))
    assert preloads(str(tmp_path), program) == (f"{tmp_path}/libweft-redirect.so", f"{tmp_path}/libcudart.so.13")
    assert preloads(str(tmp_path), Executable()) == (f"{tmp_path}/libweft-redirect.so",)
    assert preloads("/nonexistent", program) == ()
