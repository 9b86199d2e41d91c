"""Stand-ins for the CuPy of 2017 and the call of an old-style Function, so that the printed module of post 001 runs.

There is no driver behind them. `load` runs `posts/001_roi_module.py` as it is printed, and its kernels are computed by
`frcnn_lite.ops`. Tensors take the place of their pointers (`.data_ptr()` is cut out of the text), because a stand-in
asks what a kernel would not: whether all of them are on one device. What is true of the printed Python shows: which
kernel is looked up when, and where tensors are made. What a driver answers does not.
"""

import functools
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

import torch
from torch import Tensor

from course.kit.files import POSTS
from frcnn_lite import ops, parallel

launched: list[tuple[int, int]] = []
"""Of each launch, the device that its kernel was loaded for, and the one that was current."""


class Kernel:
    """What `get_function` returns; it notes for which device it was loaded, and each launch."""

    def __init__(self, name: str) -> None:
        self.name, self.device = name, torch.cuda.current_device()

    def __call__(self, args: list[Any], block: tuple[int, ...], grid: tuple[int, ...], stream: Any) -> None:
        assert block[0] * grid[0] >= args[-1], "fewer threads than numbers"
        launched.append((self.device, torch.cuda.current_device()))
        (_forward if self.name == "roi_forward" else _backward)(*args)


def _forward(
    x: Tensor, rois: Tensor, output: Tensor, argmax: Tensor, scale: float,
    c: int, h: int, w: int, ph: int, pw: int, count: int,
) -> None:  # fmt: skip
    parallel.same_device(x=x, rois=rois, output=output, argmax=argmax)
    values, places = ops.roi_pool_with_argmax(x.detach(), rois, (ph, pw), scale)
    output.copy_(values)
    argmax.copy_(places)


def _backward(grad: Tensor, argmax: Tensor, rois: Tensor, grad_input: Tensor, *sizes: float) -> None:
    parallel.same_device(grad=grad, argmax=argmax, rois=rois, grad_input=grad_input)
    images, size = rois[:, 0].long(), list(grad_input.shape)
    grad_input.copy_(torch.ops.frcnn_lite.roi_pool_backward(grad, argmax, images, size, False))


def memoize(for_each_device: bool) -> Callable[..., Any]:
    """CuPy's: one result for each set of arguments, and with `for_each_device` for each current device."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        cached = functools.cache(lambda device, *args, **kwargs: function(*args, **kwargs))
        return lambda *args, **kwargs: cached(torch.cuda.current_device() if for_each_device else 0, *args, **kwargs)

    return decorate


def _modules() -> dict[str, ModuleType]:
    """What the printed file imports, by name."""
    cupy, roi_cupy = ModuleType("cupy"), ModuleType("model.utils.roi_cupy")
    compiled = SimpleNamespace(get_function=Kernel)
    runtime = SimpleNamespace(free=lambda pointer: None)
    vars(cupy).update(
        util=SimpleNamespace(memoize=memoize),
        cuda=SimpleNamespace(compile_with_cache=lambda code: compiled, runtime=runtime),
    )
    vars(roi_cupy).update(kernel_forward="not printed", kernel_backward="not printed")
    packages = {"model": ModuleType("model"), "model.utils": ModuleType("model.utils")}
    return {"cupy": cupy, "model.utils.roi_cupy": roi_cupy, **packages}


class _Called(torch.autograd.Function):
    """How the autograd of 2017 called an instance of an old-style Function."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, rois: Tensor, instance: Any) -> Any:
        ctx.instance = instance
        return type(instance).forward(instance, x, rois)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return *type(ctx.instance).backward(ctx.instance, grad), None


def load(*changes: tuple[str, str], then: bool = True) -> dict[str, Any]:
    """The names of the printed file, with the text of `changes` (old, new) replaced; `then`: Functions are called."""
    text = (POSTS / "001_roi_module.py").read_text(encoding="utf-8")
    for old, new in [(".data_ptr()", ""), *changes]:
        assert old in text, old
        text = text.replace(old, new)
    names: dict[str, Any] = {"__name__": "roi_module"}
    with mock.patch.dict(sys.modules, _modules()):
        exec(compile(text, "001_roi_module.py", "exec"), names)
    if then:
        old_style = names["RoI"]
        body = {name: vars(old_style)[name] for name in ("__init__", "forward", "backward")}
        body["__call__"] = lambda self, x, rois: _Called.apply(x, rois, self)  # type: ignore[no-untyped-call]
        names["RoI"] = type("RoI", (), body)
    return names
