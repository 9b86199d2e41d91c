"""Operators that take functions (flex_attention, cond, scan): on virtual tensors they run as they are written.

Each has an implementation in Python for tensors of every device, made of ordinary operators, and a table of the classes
of tensors it knows. What the table does not have is an error, so virtual tensors are entered.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch._C import DispatchKey

from vgpu.base.patches import Patches
from vgpu.tensors.tensor import KINDS


def install(patches: Patches) -> None:
    """Let each such operator find its own implementation for virtual tensors, when it first meets one."""
    operator = torch._ops.HigherOrderOperator
    dispatch, known = operator.dispatch, []

    @functools.wraps(dispatch)
    def dispatch_virtual(self: Any, dispatch_key: Any, *args: Any, **kwargs: Any) -> Any:
        if dispatch_key == DispatchKey.Python:
            written = self.py_kernels.get(DispatchKey.CompositeExplicitAutograd)
            if written is not None:
                for kind in KINDS - self.python_key_table.keys():
                    self.python_key_table[kind] = written
                    known.append((self.python_key_table, kind))
        return dispatch(self, dispatch_key, *args, **kwargs)

    def forget() -> None:
        while known:
            table, kind = known.pop()
            table.pop(kind, None)

    patches.set(operator, "dispatch", dispatch_virtual)
    patches.on_restore(forget)
