"""What a virtual program leaves in its environment, so that the interpreters it starts are virtual, too.

`VGPUS` and its companions say which machine; PYTHONPATH names a folder whose `sitecustomize.py` reads them at start-up.
Interpreters that ignore their environment (`python -I`, `python -E`) are not reached. `startup.py` does the rest.

Children of `multiprocessing` are told in another way (processes.py): what they unpickle first is a call of `resume`.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path

from vgpu.machine import triton as interpreter

GPUS, MEMORY, PROFILE = "VGPUS", "VGPUS_MEMORY", "VGPUS_PROFILE"
ERRORS, RANDOM, TRITON = "VGPUS_ERRORS", "VGPUS_RANDOM", "VGPUS_TRITON"
QUIET = "VGPUS_QUIET"  # 1: nobody needs to hear that real GPUs are hidden
CHILDREN = str(Path(__file__).parents[1] / "children")


def for_children(
    gpus: int,
    memory: int | str | None = None,
    profile: str | None = None,
    errors: str | None = None,
    random: str | None = None,
    triton: str | None = None,
) -> dict[str, str]:
    """The variables to add to the environment of a process whose children are to have this machine.

    Args:
        gpus: how many virtual GPUs a child gets.
        memory: of each, in bytes or as text such as "64MiB"; without it, the profile's, or the default.
        profile: which GPU they are, as in "h100".
        errors: when errors of kernels come, "early" or "late".
        random: whose random numbers they draw, "cpu" or "cuda".
        triton: "interpret", if Triton's interpreter runs its kernels.
    """
    before = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry not in ("", CHILDREN)]
    told = {GPUS: str(gpus), QUIET: "1", "PYTHONPATH": os.pathsep.join([CHILDREN, *before])}
    chosen = {MEMORY: memory, PROFILE: profile, ERRORS: errors, RANDOM: random, TRITON: triton}
    if triton is not None:
        chosen[interpreter.VARIABLE] = 1
    return told | {name: str(value) for name, value in chosen.items() if value is not None}


def tell(variables: dict[str, str]) -> Callable[[], None]:
    """Set variables in this process's environment, which its children get.

    Returns:
        what puts back the values from before, where nobody has changed the new ones since.
    """
    before = {name: os.environ.get(name) for name in variables}
    os.environ |= variables

    def take_back() -> None:
        for name, value in before.items():
            if os.environ.get(name) != variables[name]:
                continue
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value

    return take_back


def resume(environment: dict[str, str], call: bytes) -> None:
    """Give this process, a child of `multiprocessing`, the machine of its parent.

    It may be unpickled in a process that has imported nothing yet, with startup.py waiting for torch (a child of a
    fork server): this file does without torch, and lets torch come before any file of this package that needs it.

    Args:
        environment: variables that are the parent's by now; a fork server has those of the time it was started.
        call: a function and its arguments, pickled for themselves because their file needs torch.
    """
    os.environ |= environment
    import torch  # noqa: F401

    function, arguments = pickle.loads(call)
    function(*arguments)
