# Completed: what the notes leave out, or what is gone since, so that 001_roi_module.py runs. Nothing here is its authors'.
"""Stand-ins for CuPy of 2017, the kernels and the call of an old-style Function; computed by `frcnn_lite.ops`.

`load` runs the printed file with them. Tensors take the place of their pointers (`.data_ptr()` is cut out of the text),
because a stand-in asks what a kernel would not: whether all of them lie on one device, and on the kernel's own.
"""
import functools
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from unittest import mock

import torch

from frcnn_lite import ops, parallel


class Kernel:
    """A compiled function of one device: CuPy's raises CUDA_ERROR_INVALID_HANDLE on any other, and this acts it out."""

    def __init__(self, name):
        self.name, self.device = name, torch.cuda.current_device()

    def __call__(self, args, block, grid, stream):
        assert block[0] * grid[0] >= args[-1], "fewer threads than numbers"
        if torch.cuda.current_device() != self.device:
            raise RuntimeError("CUDA_ERROR_INVALID_HANDLE: invalid resource handle (acted out by the stand-in for CuPy)")
        {"roi_forward": roi_forward, "roi_backward": roi_backward}[self.name](*args)


def roi_forward(x, rois, output, argmax, scale, channels, height, width, ph, pw, count):
    parallel.same_device(x=x, rois=rois, output=output, argmax=argmax)
    values, places = ops.roi_pool_with_argmax(x.detach(), rois, (ph, pw), scale)
    output.copy_(values)
    argmax.copy_(places)


def roi_backward(grad, argmax, rois, grad_input, regions, scale, channels, height, width, ph, pw, count):
    parallel.same_device(grad=grad, argmax=argmax, rois=rois, grad_input=grad_input)
    size = list(grad_input.shape)
    grad_input.copy_(torch.ops.frcnn_lite.roi_pool_backward(grad, argmax, rois[:, 0].long(), size, False))


def memoize(for_each_device):
    """CuPy's: one result for each set of arguments, and with `for_each_device` for each current device."""

    def decorate(function):
        cached = functools.cache(lambda device, *args, **kwargs: function(*args, **kwargs))
        return lambda *args, **kwargs: cached(torch.cuda.current_device() if for_each_device else 0, *args, **kwargs)

    return decorate


def modules():
    """What the printed file imports, by name."""
    cupy, roi_cupy = ModuleType("cupy"), ModuleType("model.utils.roi_cupy")
    cupy.util = SimpleNamespace(memoize=memoize)
    compiled = SimpleNamespace(get_function=Kernel)
    runtime = SimpleNamespace(free=lambda pointer: None)
    cupy.cuda = SimpleNamespace(compile_with_cache=lambda code: compiled, runtime=runtime)
    roi_cupy.kernel_forward = roi_cupy.kernel_backward = "the notes do not print the source"
    packages = {"model": ModuleType("model"), "model.utils": ModuleType("model.utils")}
    return {"cupy": cupy, "model.utils.roi_cupy": roi_cupy, **packages}


class Called(torch.autograd.Function):
    """How the autograd of 2017 called an instance of an old-style Function."""

    @staticmethod
    def forward(ctx, x, rois, instance):
        ctx.instance = instance
        return type(instance).forward(instance, x, rois)

    @staticmethod
    def backward(ctx, grad):
        return *type(ctx.instance).backward(ctx.instance, grad), None


def load(*changes, then=True):
    """The names of the printed file, with the text of `changes` (old, new) replaced; `then`: Functions are called."""
    text = Path(__file__).with_name("001_roi_module.py").read_text(encoding="utf-8")
    for old, new in [(".data_ptr()", ""), *changes]:
        assert old in text, old
        text = text.replace(old, new)
    names = {"__name__": "roi_module"}
    with mock.patch.dict(sys.modules, modules()):
        exec(compile(text, "001_roi_module.py", "exec"), names)
    if then:
        old_style = names["RoI"]
        body = {name: vars(old_style)[name] for name in ("__init__", "forward", "backward")}
        body["__call__"] = lambda self, x, rois: Called.apply(x, rois, self)
        names["RoI"] = type("RoI", (), body)
    return names
