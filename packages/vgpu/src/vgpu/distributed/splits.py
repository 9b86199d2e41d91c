"""`split_group` where ranks are threads: in torch 2.11 that of C++ ends the process with a segmentation fault."""

from __future__ import annotations

import datetime
from typing import Any

import torch

from vgpu.base.patches import Patches

c10d: Any = torch.distributed.distributed_c10d  # PyTorch declares little of what is used of it here


def install(patches: Patches) -> None:
    """Let a new group be made beside the one that is split, and not by it: over gloo it is made anew in any case."""
    patches.set(c10d.ProcessGroup, "split_group", _split_group)


def _split_group(
    group: Any,
    new_ranks: list[int],
    timeout: datetime.timedelta | None = None,
    opts: Any = None,
    group_name: str = "",
    group_desc: str | None = None,
    device_types: list[torch.device] | None = None,
) -> Any:
    """A group of some ranks of this one, over backends of the same kinds; None on a rank that is not among them."""
    if group.rank() not in new_ranks:
        return None
    store = c10d.PrefixStore(f"{group_name}/", group.get_group_store())
    rank, size = new_ranks.index(group.rank()), len(new_ranks)
    made = c10d.ProcessGroup(store, rank, size)
    kinds = c10d.BackendConfig(c10d.Backend(c10d._world.pg_map[group][0])).get_device_backend_map()
    for device in device_types or group._device_types:
        kind = c10d.Backend.backend_type_map[kinds[device.type]]
        backend = group._get_backend(device)
        own_store = c10d.PrefixStore(f"{device.type}/", store)
        made._set_default_backend(kind)
        made._register_backend(device, kind, type(backend)(own_store, rank, size, opts or backend.options))
    made._set_group_name(group_name)
    made._set_group_desc(group_desc or "undefined")
    return made
