"""What an executable says about the CUDA runtime it uses, from its ELF sections. Reads the file, runs nothing.

A program built by nvcc registers its device code through section .nvFatBinSegment, which strip keeps.
Design note: docs/design/cudart.md.
"""

import mmap
import os
import re
import shutil
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from weft.base.errors import RuntimeInside

SECTION = struct.Struct("<IIQQQQIIQQ")
DYNAMIC = struct.Struct("<qQ")
NEEDED = 1
SHARED_RUNTIME = re.compile(r"libcudart\.so\.\d+")


@dataclass(frozen=True)
class Executable:
    """has_device_code: nvcc built it. needed: the libraries it names, as in the file."""

    has_device_code: bool = False
    has_symbols: bool = False
    needed: tuple[str, ...] = ()

    @property
    def shared_runtime(self) -> str | None:
        return next((name for name in self.needed if SHARED_RUNTIME.fullmatch(name)), None)


@dataclass(frozen=True)
class Section:
    name: str
    data: bytes | memoryview = field(repr=False)
    link: int


def inspect_program(program: str) -> Executable:
    """What is known before the program starts; nothing about scripts and what cannot be read. Raises RuntimeInside."""
    path = shutil.which(program)
    executable = read_executable(path) if path is not None else Executable()
    if executable.has_device_code and not executable.has_symbols and executable.shared_runtime is None:
        raise RuntimeInside(program)
    return executable


def read_executable(path: str) -> Executable:
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as image:
            return parse(bytes(image[:64]), image) if image[:5] == b"\x7fELF\x02" else Executable()
    except (OSError, ValueError, struct.error, IndexError, UnicodeDecodeError):
        return Executable()  # whoever starts it will say what is wrong with it


def parse(header: bytes, image: mmap.mmap) -> Executable:
    sections = list(read_sections(header, image))
    names = {section.name for section in sections}
    dynamic = next((section for section in sections if section.name == ".dynamic"), None)
    return Executable(
        has_device_code=".nvFatBinSegment" in names,
        has_symbols=".symtab" in names,
        needed=tuple(read_needed(bytes(dynamic.data), bytes(sections[dynamic.link].data))) if dynamic else (),
    )


def read_sections(header: bytes, image: mmap.mmap) -> Iterator[Section]:
    """Contents are taken for the small ones that are looked into."""
    (table,) = struct.unpack_from("<Q", header, 40)
    _, count, names_index = struct.unpack_from("<HHH", header, 58)
    rows = [SECTION.unpack_from(image, table + i * SECTION.size) for i in range(count)]
    names_at, names_size = rows[names_index][4:6]
    names = image[names_at : names_at + names_size]
    for name_at, _, _, _, offset, size, link, *_ in rows:
        name = names[name_at : names.index(b"\0", name_at)].decode()
        wanted = name in (".dynamic", ".dynstr")
        yield Section(name, image[offset : offset + size] if wanted else b"", link)


def read_needed(dynamic: bytes, strings: bytes) -> Iterator[str]:
    for tag, value in DYNAMIC.iter_unpack(dynamic[: len(dynamic) // DYNAMIC.size * DYNAMIC.size]):
        if tag == NEEDED:
            yield strings[value : strings.index(b"\0", value)].decode()


def preloads(client_dir: str, executable: Executable) -> tuple[str, ...]:
    """Libraries that must be loaded first. A shared runtime by its path: a program with an RPATH would find another one."""
    names = ["libweft-redirect.so", *([executable.shared_runtime] if executable.shared_runtime else [])]
    paths = [os.path.join(client_dir, name) for name in names]
    return tuple(path for path in paths if os.path.isfile(path))
