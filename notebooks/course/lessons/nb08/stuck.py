"""What ranks that stand still leave behind: the stacks of Python's `faulthandler`, and PyTorch's flight recorder."""

import pickle
import re
from dataclasses import dataclass
from pathlib import Path

FRAME = re.compile(r'File "(.*)", line \d+ in (\w+)')


def stack(file: Path, outermost: str) -> str:
    """The calls of the thread that runs `outermost`, innermost first: "read_files (In[21]) <- stands_still (In[21])".

    `file` is what `faulthandler.dump_traceback_later` wrote. Raises ValueError when no thread runs that function.
    """
    for thread in file.read_text(encoding="utf-8").split("\n\n"):
        frames = [f"{name} ({Path(where).name})" for where, name in FRAME.findall(thread)]
        names = [frame.partition(" ")[0] for frame in frames]
        if outermost in names:
            return " <- ".join(frames[: names.index(outermost) + 1])
    raise ValueError(f"no thread in {file.name} runs {outermost!r}")


@dataclass(frozen=True)
class Recorded:
    """A collective in the flight recorder of a rank; `line` is that of the notebook's cell it was called from."""

    number: int
    name: str
    line: int
    completed: bool


def recorded(file: Path) -> list[Recorded]:
    """The collectives that the flight recorder of one rank holds, oldest first."""
    found = []
    for entry in pickle.loads(file.read_bytes())["entries"]:
        line = next(frame["line"] for frame in entry["frames"] if frame["filename"].startswith("In["))
        found.append(Recorded(entry["collective_seq_id"], entry["profiling_name"], line, entry["retired"]))
    return found
