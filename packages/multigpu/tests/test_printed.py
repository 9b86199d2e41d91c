"""A message that torch or NCCL prints is made of words that the installed torch and NCCL hold.

`python tests/test_printed.py rows-lost` prints those parts of an entry's message that they hold, in the form of the
field `fixed`. A chapter's name in place of an entry's prints them for all its entries.
"""

import json
import mmap
import re
import struct
import sys
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from multigpu.failures import Failure, catalogue

TOLD = [entry for entry in catalogue() if entry.printed_by]
SINCE = (2, 15)  # the release of torch, and of the NCCL that it brings, whose words the messages have
FILES = {  # the files of each library that hold what it prints; a user sees the errors of CUDA through torch
    "torch": [
        ("torch", "**/*.py"),
        ("torch", "_C*.so"),
        ("torch", "bin/torch_shm_manager"),
        ("torch", "lib/lib*.so"),
        ("nvidia", "*/lib/libcudart.so*"),
    ],
    "nccl": [("nvidia", "nccl/lib/libnccl.so*")],
}
SHORTEST = 12  # letters of a part: fewer are in any library
JOINED = re.compile(r"""(["']) *\\?\n\s*(?:\+ *)?[rbfu]{0,2}["']""")  # between two literals that Python makes one
LITERAL = re.compile(r""""(?:[^"\\\n]|\\.){12,}"|'(?:[^'\\\n]|\\.){12,}\'""")
TEXT = re.compile(rb"[\t\n -~]{12,}")


def folder(package: str) -> Path | None:
    """Where a package is installed, found without importing it."""
    spec = find_spec(package)
    return Path(spec.submodule_search_locations[0]) if spec and spec.submodule_search_locations else None


def files(library: str) -> list[Path]:
    """The installed files that hold a library's words."""
    places = [(folder(package), pattern) for package, pattern in FILES[library]]
    return [file for place, pattern in places if place for file in sorted(place.glob(pattern))]


@cache
def words(library: str) -> str:
    """All texts of several words in the files of a library, each with single blanks and without escapes."""
    texts = (text for file in files(library) for text in (literals(file) if file.suffix == ".py" else constants(file)))
    return "\0".join(plain(text) for text in texts)


def plain(text: str) -> str:
    return " ".join(text.replace("\\n", " ").replace("\\", "").split())


def literals(file: Path) -> list[str]:
    """The literals of a Python file that have a blank; those over several lines are one."""
    source = JOINED.sub("", file.read_text(encoding="utf-8", errors="replace"))
    return [found for found in LITERAL.findall(source) if " " in found]


def constants(file: Path) -> Iterator[str]:
    """The texts with a blank among the constants of a compiled library; none if it is not an ELF file."""
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as library:
        if library[:4] != b"\x7fELF":
            return
        for name, start, size in sections(library):
            if name.startswith(b".rodata"):
                yield from (found.decode() for found in TEXT.findall(library[start : start + size]) if b" " in found)


def sections(library: mmap.mmap) -> Iterator[tuple[bytes, int, int]]:
    """The name, the place and the size of each section of an ELF file of 64 bits."""
    (table,) = struct.unpack_from("<Q", library, 0x28)
    size, count, names = struct.unpack_from("<HHH", library, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", library, table + size * k) for k in range(count)]
    for name, _, _, _, start, length in headers:
        begins = headers[names][4] + name
        yield library[begins : library.find(b"\0", begins)], start, length


def fixed(message: str, library: str) -> list[str]:
    """The parts of a message that a library has word by word, each as long as it can be."""
    left, parts = message.split(), []
    while left:
        found = next((k for k in range(len(left)) if " ".join(left[: k + 1]) not in words(library)), len(left))
        part = " ".join(left[:found])
        parts += [part] if found > 1 and len(part) >= SHORTEST else []
        left = left[max(found, 1) :]
    return parts


def torch_release() -> tuple[int, ...]:
    """The first two numbers of the installed torch's version; (0,) where there is none, or one without CUDA's part."""
    place = folder("torch")
    if not place or not list(place.glob("lib/libtorch_cuda.so")):
        return (0,)
    version = (place / "version.py").read_text(encoding="utf-8")
    return tuple(map(int, re.findall(r"\d+", version.partition("__version__ = ")[2])[:2]))


def test_parts_are_of_the_message_and_say_something() -> None:
    parts = [(entry, part) for entry in TOLD for part in entry.fixed]
    assert [(entry.id, part) for entry, part in parts if part not in entry.message or len(part) < SHORTEST] == []
    assert [entry.id for entry in catalogue() if bool(entry.fixed) != bool(entry.printed_by)] == []


def test_messages_are_of_libraries_that_the_tests_have() -> None:
    forms = re.compile(rf"({'|'.join(FILES)})( until [\d.]+)?")
    assert [entry.id for entry in TOLD if not forms.fullmatch(entry.printed_by)] == []


@pytest.mark.skipif(torch_release() < SINCE, reason="an older torch, or one without CUDA, holds other words")
@pytest.mark.parametrize("library", FILES)
def test_the_installed_library_holds_what_it_prints_and_not_what_an_older_one_printed(library: str) -> None:
    if not words(library):
        pytest.skip(f"{library} is not installed in a form that can be read")
    assert [held for entry in TOLD if (held := wrong(entry, library))] == []


def wrong(entry: Failure, library: str) -> tuple[str, list[str]] | None:
    """An entry of a library with those of its parts that are gone, or that are there and are said to be gone."""
    printer, _, until = entry.printed_by.partition(" until ")
    parts = [part for part in entry.fixed if (part in words(library)) == bool(until)]
    return (entry.id, parts) if printer == library and parts else None


if __name__ == "__main__":
    for entry in catalogue():
        if entry.id in sys.argv[1:] or entry.chapter in sys.argv[1:]:
            for library in FILES:
                print(f"{entry.id}, {library}: {json.dumps(fixed(entry.message, library))}")
