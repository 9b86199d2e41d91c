"""A PyTorch as it is built for browsers, imitated: without torch.distributed, and no thread can start.

Import it before torch. It is for a process of its own, since nothing is put back.
"""

import importlib.machinery
import sys
import threading
import types

ABSENT = ("_c10d_init", "_rpc_init", "_faulty_agent_init", "_dist_autograd_init", "_distributed_c10d")


class Loader:
    """Loads torch._C and takes away what such a build lacks."""

    def __init__(self, loader) -> None:
        self.loader = loader

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module) -> None:
        self.loader.exec_module(module)
        for name in ABSENT:
            vars(module).pop(name, None)


class Finder:
    """Finds torch._C for the loader."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "torch._C":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        spec.loader = Loader(spec.loader)
        return spec


def no_thread(*args, **kwargs):
    raise RuntimeError("can't start new thread")


sys.meta_path.insert(0, Finder)
threading._start_new_thread = no_thread
sys._emscripten_info = types.SimpleNamespace(pthreads=False)

import torch  # noqa: E402  it must find what is above


class Computed(torch.Tensor):
    """C++ looks for DTensor when it first meets a tensor like this one; such a build never does."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func, kinds, args=(), kwargs=None):
        return torch.ones(2)


sys.modules["torch.distributed.tensor"] = torch.distributed.tensor = types.SimpleNamespace(
    DTensor=type("DTensor", (), {})
)
torch.Tensor._make_subclass(Computed, torch.ones(2)) + 1
del sys.modules["torch.distributed.tensor"], torch.distributed.tensor
