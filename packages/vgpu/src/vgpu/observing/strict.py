"""The check "virtual in, virtual out": no operator may let a result leave its device unasked."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from vgpu.tensors.tensor import VirtualTensor, is_virtual

# Operators whose result lies on the host on real GPUs, too.
_ON_HOST = frozenset(("_to_copy", "_pack_padded_sequence", "_coalesced_", "nested_tensor"))


@contextlib.contextmanager
def check_placement() -> Iterator[None]:
    """Inside the block, raise AssertionError when an operator on virtual tensors returns a tensor elsewhere.

    A fault of virtual GPUs, not of the program: worth a report with the operator's name. It covers all threads.
    """
    run = VirtualTensor.run_operator

    def checked(func: Any, args: tuple, kwargs: dict | None) -> Any:
        result = run(func, args, kwargs)
        asked = (kwargs or {}).get("device")
        name = func._schema.name.removeprefix("aten::")
        if asked is None and name not in _ON_HOST and not _writes_to_host(args):
            for out in tree_leaves(result):
                if isinstance(out, torch.Tensor) and not (is_virtual(out) or out.is_meta):
                    raise AssertionError(f"virtual GPUs: {func} returned a tensor on {out.device}")
        return result

    VirtualTensor.run_operator = staticmethod(checked)
    try:
        yield
    finally:
        VirtualTensor.run_operator = staticmethod(run)


def _writes_to_host(args: tuple) -> bool:
    """Copies into a CPU tensor return that tensor."""
    return bool(args) and isinstance(args[0], torch.Tensor) and not is_virtual(args[0])
