"""What a reader has answered so far: a small JSON file in their own home, written only from a live JupyterLab.

Under nbval, in continuous integration and when notebooks are re-executed nothing is read or written, so that outputs
are those of a fresh clone.
"""

import errno
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SWITCH = "FRCNN_LITE_LEARN"  # off: never; on: always; unset: when a person is there
FRONT_ENDS = ("JPY_SESSION_NAME", "VSCODE_PID", "COLAB_RELEASE_TAG")  # set in a kernel by JupyterLab, VS Code, Colab
AUTOMATA = ("PYTEST_CURRENT_TEST", "CI")  # inherited by a kernel that a program started


def is_live(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether a person sits in front of this kernel, whose answers are worth keeping."""
    switch = environ.get(SWITCH, "").lower()
    if switch in ("on", "off"):
        return switch == "on"
    return any(name in environ for name in FRONT_ENDS) and not any(environ.get(name) for name in AUTOMATA)


def state_file(environ: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path:
    """Where answers are kept: the directory for state of this operating system (XDG base directories on Linux)."""
    if platform == "win32":
        base = Path(environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = Path(environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return base / "frcnn_lite" / "learn.json"


_hidden = False  # whether `recall` finds nothing at the moment
_unsaved: dict[str, dict[str, Any]] = {}  # answers that no file took: they last as long as this kernel
_told: set[str] = set()  # what the reader was told already

NO_FILE = (OSError, RuntimeError)  # RuntimeError: the system knows no home folder for this user


def recall(section: str, key: str) -> Any:
    """What was recorded, None if nothing was or nobody is there."""
    if _hidden or not is_live():
        return None
    _try_folder()
    unsaved = _unsaved.get(section, {})
    try:
        return unsaved[key] if key in unsaved else _read().get(section, {}).get(key)
    except NO_FILE as error:
        _tell("read", f"The answers that you gave earlier cannot be read: {_reason(error)}.")
        return None


@contextmanager
def nothing_answered() -> Iterator[None]:
    """Inside, `recall` finds nothing, as for a reader who has just begun."""
    global _hidden
    _hidden = True
    try:
        yield
    finally:
        _hidden = False


def record(section: str, key: str, value: Any) -> bool:
    """Keep one answer, if a person gave it; returns whether it is in the file.

    Where no file can be written the answer lasts as long as the kernel, and the reader is told so once.
    """
    if not is_live():
        return False
    try:
        answers = _read()  # what cannot be read is not written over
        answers.setdefault(section, {})[key] = value
        _write(answers)
    except NO_FILE as error:
        _unsaved.setdefault(section, {})[key] = value
        _tell_unkept(error)
        return False
    return True


def _try_folder() -> None:
    """A reader answers by a click, and what is printed then is easily missed: they are told in the question's cell."""
    try:
        folder = state_file().parent
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))
    except NO_FILE as error:
        _tell_unkept(error)


def _write(answers: dict[str, dict[str, Any]]) -> None:
    path = state_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(json.dumps(answers, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        temporary.replace(path)  # in one step: an interruption leaves the old answers whole
    finally:
        temporary.unlink(missing_ok=True)  # a full disk took half of it


def _read() -> dict[str, dict[str, Any]]:
    """Section -> key -> answer. Of a file of a different shape what can be read stays, and the file is kept aside."""
    path = state_file()
    try:
        answers = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError):
        answers = None
    sections = answers if isinstance(answers, dict) else {}
    readable = {name: section for name, section in sections.items() if isinstance(section, dict)}
    if answers != readable:
        _set_aside(path, readable)
    return readable


def _set_aside(path: Path, readable: dict[str, dict[str, Any]]) -> None:
    """Start a new file with what is `readable` of this one, which is the reader's and not ours to delete."""
    aside = path.with_suffix(".unreadable.json")
    path.replace(aside)
    _tell("shape", f"Some of your earlier answers cannot be read. The file that holds them is now {aside}.")
    _write(readable)


def _tell_unkept(error: Exception) -> None:
    _tell("write", f"Your answers are not kept: they last until this kernel stops. The reason: {_reason(error)}.")


def _reason(error: Exception) -> str:
    """What is wrong and where: `Permission denied: /state/frcnn_lite`."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}"
    return str(error)


def _tell(about: str, words: str) -> None:
    """Say something once in the life of a kernel."""
    if about not in _told:
        _told.add(about)
        print(words)
