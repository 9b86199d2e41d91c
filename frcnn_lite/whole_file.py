"""Files that are written whole or not at all, and errors that say why one could not be written."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

REASONS = {errno.ENOSPC: "the disk is full", errno.EDQUOT: "your quota of the disk is used up"}


class WriteError(OSError):
    """A file could not be written. The message names the file and the reason; `errno` is the system's number for it."""

    @classmethod
    def of(cls, path: Path, cause: OSError) -> "WriteError":
        """For the file `path`, which the system refused with `cause`."""
        reason = REASONS.get(cause.errno or 0) or cause.strerror or str(cause)
        error = cls(f"{path} could not be written: {reason}")
        error.errno = cause.errno
        return error


@contextmanager
def whole_file(path: Path, *, replace: bool = False) -> Iterator[Path]:
    """Gives a name beside `path` to write to; at the end of the block what was written takes the name `path`.

    A crash at any moment leaves what was at `path` before or the new file, never half of one, because the bytes are on
    the disk before the name changes. If the block fails, what it wrote is removed, so it neither fills the disk nor
    stands in the way of the next try. Folders are made if need be. The name has the ending of `path`, by which some
    writers choose the format.

    Args:
        replace: take the place of a file that is there already.

    Raises:
        FileExistsError: there is a file already, and it is not to be replaced.
        WriteError: the system does not let it be written: the disk is full, or the folder can only be read.
    """
    if path.exists() and not replace:
        raise FileExistsError(f"{path} exists already; choose another name")
    partial = path.with_name(f"{path.stem}.partial{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        with partial.open("rb+") as file:
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException as error:
        with suppress(OSError):
            partial.unlink()
        cause = _system_error(error)
        if cause is None or isinstance(cause, WriteError):  # the latter names a file already
            raise
        raise WriteError.of(path, cause) from error


def _system_error(error: BaseException | None) -> OSError | None:
    """The system's error behind `error`: torch.save meets it first, and then raises a RuntimeError about positions."""
    while isinstance(error, RuntimeError):
        error = error.__cause__ or error.__context__
    return error if isinstance(error, OSError) else None
