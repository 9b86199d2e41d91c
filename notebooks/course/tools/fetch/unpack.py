"""Unpack an archive from a stranger: nothing lands outside the folder, no links, and no more than was said.

Python's own readers write the files. What they are given is looked at first, because they rename what leads out of the
folder, or unpack it all the same. The sizes that stand in an archive can be relied on: `zipfile` stops at them,
and in a tar they are where the next file begins, but for sparse files, which are refused.
"""

import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path, PureWindowsPath
from typing import TypeVar

MAX_FILES = 1_000_000
DAMAGE = (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, RuntimeError)
Member = TypeVar("Member", zipfile.ZipInfo, tarfile.TarInfo)


def unpack(archive: Path, folder: Path, max_bytes: int) -> None:
    """Write the files of a .zip or .tar (of any compression) into `folder`, `max_bytes` in all at most.

    Owners are not taken over, and permissions that would be dangerous are not. Raises ValueError that names the
    member, or the archive when it is damaged.
    """
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as pack:
                pack.extractall(folder, _checked(archive.name, pack.infolist(), max_bytes))  # type: ignore[arg-type]
        else:
            with tarfile.open(archive) as tar:
                tar.extractall(folder, _checked(archive.name, tar, max_bytes), filter="data")  # type: ignore[arg-type]
    except DAMAGE as error:
        raise ValueError(f"{archive.name} is not an archive, or a damaged one: {error}") from error


def _checked(archive: str, members: Iterable[Member], left: int) -> Iterator[Member]:
    """The members of an archive one by one, each before it is written, up to the first that must not be."""
    for number, member in enumerate(members):
        name, kind, size = _described(member)
        path = PureWindowsPath(name)  # knows both kinds of slashes, and drives
        if path.anchor or ".." in path.parts or (kind == "file" and not path.parts):
            raise ValueError(f"{archive}: the name {name!r} leads out of the folder")
        if kind not in ("file", "folder"):
            raise ValueError(f"{archive}: {name!r} is a {kind}; only files and folders are unpacked")
        left -= size
        if left < 0:
            raise ValueError(f"{archive}: unpacks to more than it should, at {name!r}")
        if number >= MAX_FILES:
            raise ValueError(f"{archive} holds more than {MAX_FILES:,} files")
        yield member


def _described(member: zipfile.ZipInfo | tarfile.TarInfo) -> tuple[str, str, int]:
    """Name, kind and size of a member."""
    if isinstance(member, zipfile.ZipInfo):
        is_link = stat.S_ISLNK(member.external_attr >> 16)
        return member.filename, "link" if is_link else "folder" if member.is_dir() else "file", member.file_size
    if member.issym() or member.islnk():
        return member.name, "link", 0
    if member.issparse():
        return member.name, "sparse file", 0
    return member.name, "file" if member.isreg() else "folder" if member.isdir() else "device", member.size
