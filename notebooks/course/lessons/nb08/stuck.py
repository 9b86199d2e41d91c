"""Who waits, and for what: in a diagnosis, in the stacks of Python's `faulthandler`, in PyTorch's flight recorder."""

import os
import pickle
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course.kit.ranks import RanksFailed

FRAME = re.compile(r'File "(.*)", line \d+ in (\w+)')


def who_waits(end: RanksFailed | list[Any]) -> str:
    """The rank that waits in a collective at the end of an attempt, as a choice of a question names it, or "nobody"."""
    positions = end.positions if isinstance(end, RanksFailed) else ()
    waiting = [f"rank {at.rank}, in {at.call.name} #{at.call.number}" for at in positions if at.call is not None]
    return waiting[0] if waiting else "nobody"


def as_on_gpus() -> None:
    """Let this rank see what a rank on GPUs sees when a different one ends. To be called before it joins its group.

    Virtual GPUs would raise at once, and NCCL's watchdog would end the process at the time-out.
    """
    os.environ.update(VGPUS_LEFT="wait", TORCH_NCCL_BLOCKING_WAIT="1")


def stack(file: Path, outermost: str) -> str:
    """The calls of the thread that runs `outermost`, innermost first: "read_files (In[15]) <- hangs (In[15])".

    `file` is what `faulthandler.dump_traceback_later` wrote. Calls of virtual GPUs are left out: GPUs have none.
    Raises ValueError when no thread runs that function.
    """
    for thread in file.read_text(encoding="utf-8").split("\n\n"):
        found = [(Path(where), name) for where, name in FRAME.findall(thread)]
        frames = [f"{name} ({where.name})" for where, name in found if "vgpu" not in where.parts]
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
