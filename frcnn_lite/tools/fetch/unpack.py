"""Unpack an archive from a stranger: nothing lands outside the folder, no links, and no more than was said."""

import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PureWindowsPath
from typing import IO, NamedTuple

BLOCK = 1 << 20
MAX_FILES = 1_000_000
DAMAGE = (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, RuntimeError)


class Member(NamedTuple):
    """name: as in the archive; kind: "file", "folder", or what else it is; open: its bytes."""

    name: str
    kind: str
    open: Callable[[], IO[bytes] | None]


def unpack(archive: Path, folder: Path, max_bytes: int) -> None:
    """Write the files of a .zip or .tar (of any compression) into `folder`, `max_bytes` in all at most.

    Bytes are counted as they come out, so a false size in the archive does not help it. Permissions and owners are
    not taken over. Raises ValueError that names the member, or the archive when it is damaged.
    """
    left = max_bytes
    try:
        for number, member in enumerate(_members(archive)):
            if number >= MAX_FILES:
                raise ValueError(f"{archive.name} holds more than {MAX_FILES:,} files")
            path = folder / _safe_name(archive, member)
            if member.kind == "folder":
                path.mkdir(parents=True, exist_ok=True)
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                left = _write(archive, member, path, left)
    except DAMAGE as error:
        raise ValueError(f"{archive.name} is no archive, or a damaged one: {error}") from error


def _safe_name(archive: Path, member: Member) -> str:
    name = PureWindowsPath(member.name)  # knows both kinds of slashes, and drives
    if name.anchor or ".." in name.parts or (member.kind == "file" and not name.parts):
        raise ValueError(f"{archive.name}: the name {member.name!r} leads out of the folder")
    if member.kind not in ("file", "folder"):
        raise ValueError(f"{archive.name}: {member.name!r} is a {member.kind}; only files and folders are unpacked")
    return member.name


def _write(archive: Path, member: Member, path: Path, left: int) -> int:
    """The bytes that may still be written after this file."""
    source = member.open()
    if source is None:
        raise ValueError(f"{archive.name}: {member.name!r} cannot be read")
    with source, path.open("wb") as file:
        while block := source.read(BLOCK):
            left -= len(block)
            if left < 0:
                raise ValueError(f"{archive.name}: unpacks to more than it should, at {member.name!r}")
            file.write(block)
    return left


def _members(archive: Path) -> Iterator[Member]:
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as pack:
            for info in pack.infolist():
                link = stat.S_ISLNK(info.external_attr >> 16)
                kind = "link" if link else "folder" if info.is_dir() else "file"
                yield Member(info.filename, kind, lambda info=info: pack.open(info))  # type: ignore[misc]
        return
    with tarfile.open(archive) as pack:
        for entry in pack:
            link = entry.issym() or entry.islnk()
            kind = "file" if entry.isreg() else "folder" if entry.isdir() else "link" if link else "device"
            yield Member(entry.name, kind, lambda entry=entry: pack.extractfile(entry))  # type: ignore[misc]
