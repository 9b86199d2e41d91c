"""torchvision's operators under `torch.autocast("cuda")`: they compute in float32, and give back the dtype they got."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_map

from vgpu.base import imports
from vgpu.base.patches import Patches
from vgpu.operators import autocast


def install(patches: Patches) -> None:
    """Replace the kernels of torchvision, once it is imported."""
    patches.on_restore(imports.after("torchvision.extension", lambda: _replace(patches)))


def _replace(patches: Patches) -> None:
    library = torch.library.Library("torchvision", "IMPL")
    patches.on_restore(library._destroy)
    for qualified in torch._C._dispatch_get_registrations_for_dispatch_key("AutocastCUDA"):
        namespace, _, name = qualified.partition("::")
        if namespace == "torchvision":
            library.impl(name, _kernel(name), "AutocastCUDA")


def _kernel(name: str) -> Callable:
    op = getattr(torch.ops.torchvision, name).default

    def kernel(first: torch.Tensor, *args: Any) -> Any:
        result = autocast.in_float32(op, first, *args)
        return tree_map(lambda t: t.to(first.dtype) if t.is_floating_point() else t, result)

    return kernel
