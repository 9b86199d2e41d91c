"""Where Python cannot start threads, as in a browser, `torch.nn.parallel` calls one replica after the other."""

from __future__ import annotations

import sys
import threading
import types

import torch
from torch.nn.parallel import parallel_apply

from vgpu.base.patches import Patches


def install(patches: Patches) -> None:
    """Give `parallel_apply` threads that run when they are started, if there are no others."""
    if not getattr(getattr(sys, "_emscripten_info", None), "pthreads", True):
        module = sys.modules[parallel_apply.__module__]  # the function hides it in the package
        patches.set(module, "threading", types.SimpleNamespace(Thread=_AtOnce, Lock=threading.Lock))


class _AtOnce(threading.Thread):
    """A thread whose work is done when `start` returns, in modes of its own, as a real one has them."""

    def start(self) -> None:
        with torch.inference_mode(False), torch.set_grad_enabled(torch.is_grad_enabled()):
            self.run()

    def join(self, timeout: float | None = None) -> None:
        """There is nothing to wait for."""
