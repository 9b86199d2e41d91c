"""`torch.distributed.rpc`: tensors of virtual GPUs do not travel in it, and what would send them says so.

On GPUs, TensorPipe sends a tensor from `cuda:j` to the device that a device map names. Its C++ part reads the maps and
asks CUDA for streams, so maps are refused by name. Without a map, TensorPipe refuses tensors on GPUs, and so it does
here: to it a virtual tensor is one on the CPU, which it would send, and the receiver would get it on the same device.
"""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from vgpu import errors
from vgpu.patches import Patches
from vgpu.tensor import is_virtual

__tracebackhide__ = True  # a user's traceback, in pytest and in a diagnosis, ends in the user's own line

_INVOKES = (
    "_invoke_rpc_builtin",
    "_invoke_rpc_torchscript",
    "_invoke_remote_builtin",
    "_invoke_remote_torchscript",
)


def install(patches: Patches) -> None:
    """Refuse device maps, and tensors on GPUs in what is sent."""
    patches.when_imported("torch.distributed.rpc", functools.partial(_install, patches))


def _install(patches: Patches, rpc: Any) -> None:
    if not rpc.is_available() or not hasattr(rpc, "TensorPipeRpcBackendOptions"):  # not everywhere is TensorPipe
        return
    options = rpc.TensorPipeRpcBackendOptions
    make = options.__init__

    @functools.wraps(make)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        for name in ("device_maps", "devices"):
            if kwargs.get(name):
                raise _no_maps(name)
        make(self, *args, **kwargs)

    patches.set(options, "__init__", __init__)
    for name in ("set_device_map", "set_devices"):
        patches.set(options, name, _refused(getattr(options, name)))
    patches.set(rpc.internal, "_pickler", _Pickler)
    for name in _INVOKES:
        patches.set(rpc.api, name, _checked(getattr(rpc.api, name)))


def _no_maps(name: str) -> NotImplementedError:
    return errors.not_simulated(
        f"the device maps of RPC (TensorPipeRpcBackendOptions, {name}); tensors on the CPU can be sent"
    )


def _refused(function: Callable) -> Callable:
    @functools.wraps(function)
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise _no_maps(function.__name__)

    return refuse


class _Pickler(pickle.Pickler):
    """In the place of the pickler that takes arguments and results apart."""

    def reducer_override(self, value: Any) -> Any:
        _check(value)
        return NotImplemented


def _checked(invoke: Callable) -> Callable:
    """`invoke`, which hands tensors to C++ without a pickler."""

    @functools.wraps(invoke)
    def checked(*args: Any, **kwargs: Any) -> Any:
        for leaf in tree_leaves((args, kwargs)):
            _check(leaf)
        return invoke(*args, **kwargs)

    return checked


def _check(value: object) -> None:
    """Raise, in the words of tensorpipe_agent.cpp, for a tensor on a GPU."""
    if isinstance(value, torch.Tensor) and is_virtual(value):
        raise RuntimeError(
            "TensorPipe RPC backend only supports CPU tensors by default, please move your tensors to CPU before "
            "sending them over RPC, or call `set_device_map` on `TensorPipeRpcBackendOptions` to explicitly configure "
            f"device mapping. Device mapping is not available, but found tensor on device: {value.device}"
        )
