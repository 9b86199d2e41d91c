"""One training at a time in a run directory: a second one would write over the files of the first."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from frcnn_lite.whole_file import WriteError

LOCK = ".lock"


class RunInUseError(OSError):
    """A different process is training in the run directory."""


@contextmanager
def run_lock(path: Path) -> Iterator[None]:
    """Hold the run directory `path`, which is made if need be, while the block runs.

    The system gives the lock back when the process ends, however it ends, so a killed run can be resumed at once.
    A forked child, such as a worker of a DataLoader, does not hold it. A file `.lock` with the number of the process is
    there meanwhile. A directory that was made for it goes again if nothing else has come into it.

    Raises:
        RunInUseError: a different process holds it; the message names the process.
        FileExistsError: `path` is a file.
        WriteError: the directory cannot be made, or not be written to.
    """
    made = not path.exists()
    try:
        path.mkdir(parents=True, exist_ok=True)
        file = _locked(path / LOCK)
    except RunInUseError:
        raise
    except (FileExistsError, NotADirectoryError) as error:
        raise FileExistsError(f"{path} is a file, or is below one; a run needs a directory") from error
    except OSError as error:
        raise WriteError.of(path / LOCK, error) from error
    with file:
        try:
            yield
        finally:
            with suppress(OSError):  # Windows removes no open file; the next run takes the one that is left
                (path / LOCK).unlink()
            if made:
                with suppress(OSError):  # it holds a run
                    path.rmdir()


def _locked(path: Path) -> IO[str]:
    """The lock's file, opened and held. One that was removed by its holder after it was opened here is opened anew."""
    while True:
        file = path.open("a+", encoding="utf-8")
        if not _try_to_lock(file):
            with file:
                file.seek(0)
                holder = file.read().strip()
            raise RunInUseError(
                f"{path.parent} is being trained by {f'process {holder}' if holder else 'a different process'}; "
                "wait until it ends, or choose a different name"
            )
        with suppress(OSError):
            if os.fstat(file.fileno()).st_ino == path.stat().st_ino:
                file.truncate(0)
                file.write(str(os.getpid()))
                file.flush()
                return file
        file.close()


if sys.platform == "win32":
    import msvcrt

    FAR = 1 << 30  # a byte behind the text, which others may read while it is locked

    def _try_to_lock(file: IO[str]) -> bool:
        file.seek(FAR)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _try_to_lock(file: IO[str]) -> bool:
        # lockf and not flock: the lock belongs to this process alone, not to its forked children as well
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            return False
        return True
