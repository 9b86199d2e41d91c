"""`torch.compile`: compiled functions run eagerly, those compiled before the virtual GPUs came included."""

from __future__ import annotations

import functools
import sys
from typing import Any

import torch

from vgpu.base import errors, record
from vgpu.base.patches import Patches


def install(patches: Patches) -> None:
    """Make eager the stance of the compiler, now if it is loaded, otherwise when it is first asked for."""
    if "torch._dynamo.eval_frame" in sys.modules:
        _force_eager(patches)
    original = torch.compile
    loaded: list[bool] = []

    @functools.wraps(original)
    def compile(*args: Any, **kwargs: Any) -> Any:
        record.write(record.NOT_SIMULATED, "torch.compile, which runs eagerly")
        errors.note("virtual GPUs do not compile: functions of torch.compile run eagerly")
        compiled = original(*args, **kwargs)
        if not loaded:
            loaded.append(True)
            _force_eager(patches)
        return compiled

    patches.set(torch, "compile", compile)


def _force_eager(patches: Patches) -> None:
    """What `torch.compiler.set_stance("force_eager")` sets, with a way back to the stance there was.

    A stance that the program chooses, as PyTorch's own TestCase does before each test, is kept and has no effect.
    """
    from torch._dynamo import decorators, eval_frame

    chosen = [eval_frame._stance]

    def _set_stance(stance: Any) -> Any:
        chosen.append(stance)
        return chosen.pop(0)

    _set_stance._dynamo_forbidden = True  # type: ignore[attr-defined]
    patches.set(eval_frame, "_stance", eval_frame.DynamoStance("force_eager"))
    for module in (eval_frame, decorators):
        patches.set(module, "_set_stance", _set_stance)
