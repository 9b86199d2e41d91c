"""What a virtual program leaves in its environment, so that the interpreters it starts are virtual, too.

`VGPUS` and its companions say which machine; PYTHONPATH names a folder whose `sitecustomize.py` reads them at start-up.
Interpreters that ignore their environment (`python -I`, `python -E`) are not reached. `startup.py` does the rest.
"""

from __future__ import annotations

import os
from pathlib import Path

GPUS, FORCE, MEMORY, PROFILE = "VGPUS", "VGPUS_FORCE", "VGPUS_MEMORY", "VGPUS_PROFILE"
CHILDREN = str(Path(__file__).with_name("children"))


def for_children(gpus: int, memory: int | str | None = None, profile: str | None = None) -> dict[str, str]:
    """The variables to add to the environment of a process whose children are to have this machine.

    Args:
        gpus: how many virtual GPUs a child gets.
        memory: of each, in bytes or as text such as "64MiB"; without it, the profile's, or the default.
        profile: which GPU they are, as in "h100".
    """
    before = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry not in ("", CHILDREN)]
    told = {GPUS: str(gpus), FORCE: "1", "PYTHONPATH": os.pathsep.join([CHILDREN, *before])}
    chosen = {MEMORY: memory, PROFILE: profile}
    return told | {name: str(value) for name, value in chosen.items() if value is not None}
