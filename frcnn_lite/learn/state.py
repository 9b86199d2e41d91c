"""What a reader has answered so far: a small JSON file in their own home, written only from a live JupyterLab.

Under nbval, in continuous integration and when notebooks are re-executed nothing is read or written, so that outputs
are those of a fresh clone.
"""

import json
import os
import sys
from collections.abc import Mapping
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


def recall(section: str, key: str) -> Any:
    """What was recorded, None if nothing was or nobody is there."""
    return _read().get(section, {}).get(key) if is_live() else None


def record(section: str, key: str, value: Any) -> None:
    """Keep one answer, if a person gave it."""
    if not is_live():
        return
    answers = _read()
    answers.setdefault(section, {})[key] = value
    path = state_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    temporary.write_text(json.dumps(answers, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    temporary.replace(path)  # in one step: an interruption leaves the old answers whole


def _read() -> dict[str, Any]:
    path = state_file()
    try:
        answers = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError:
        answers = None
    if not isinstance(answers, dict):
        path.replace(path.with_suffix(".unreadable.json"))  # kept: it is the reader's, not ours to delete
        return {}
    return answers
