"""`torch.futures.Future(devices=...)`: on which GPUs the tensors of a result may lie.

C++ would open streams of CUDA for the devices, to let whoever waits wait for the kernels, too. Here every operator has
finished when its call returns, so what is left of the devices is the check that a result is on one of them.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import torch

from vgpu import devices
from vgpu.patches import Patches
from vgpu.tensor import is_virtual

__tracebackhide__ = True  # a user's traceback, in pytest and in a diagnosis, ends in the user's own line

_expected: weakref.WeakKeyDictionary[Any, tuple[torch.device, ...]] = weakref.WeakKeyDictionary()


def install(patches: Patches) -> None:
    """Keep the devices from C++, and check results."""
    future = torch._C.Future
    patches.set(future, "__init__", _made(future.__init__))
    patches.set(future, "set_result", _set(future.set_result))
    patches.set(future, "then", _continued(future.then))
    patches.on_restore(_expected.clear)


def expect(future: Any, gpus: tuple[torch.device, ...]) -> None:
    """Let what is chained to `future` have its tensors on these GPUs only; without any, on every one, as on GPUs."""
    if gpus:
        _expected[future] = gpus


def for_others(value: Any) -> Any:
    """A value that C++ may wait for: of a future with devices, the one behind it, which fails if its result is refused.

    C++ knows the result of a future and not the function by which Python makes an error of it.
    """
    return value.then(torch._C.Future.wait) if isinstance(value, torch._C.Future) and value in _expected else value


def check_among(value: Any, gpus: tuple[torch.device, ...]) -> None:
    """Raise ValueError, in the words of a future in C++, if a value has tensors on GPUs other than these.

    Args:
        value: any object; what it holds is looked through as C++ does it, by pickling.
        gpus: without any, every value will do, as on GPUs.
    """
    if not gpus:
        return
    found = torch._jit_internal._extract_tensors(value)
    excess = {tensor.device for tensor in found if is_virtual(tensor)} - set(gpus)
    if excess:
        raise ValueError(
            f"The result contained tensors residing on device(s) {_listed(excess)} which are not among the expected "
            f"device(s) {_listed(gpus)}"
        )


def _listed(gpus: Iterable[torch.device]) -> str:
    """Devices as ivalue_inl.h writes them."""
    *first, last = (str(device) for device in sorted(gpus, key=lambda device: device.index))
    return f"{', '.join(first)} and {last}" if first else last


def _made(make: Callable) -> Callable:
    @functools.wraps(make)
    def __init__(self: Any, given: list[torch.device]) -> None:
        for device in given:
            if device.index is None:
                raise ValueError(f"Expected devices to have indices, got {device}")
            devices.check_exists(device)
        make(self, [])
        expect(self, tuple(given))

    return __init__


def _set(set_result: Callable) -> Callable:
    @functools.wraps(set_result)
    def set_checked(self: Any, result: Any) -> None:
        try:
            check_among(result, _expected.get(self, ()))
        except ValueError as error:  # whoever waits is told, and not whoever sets
            self._set_unwrap_func(_raise)
            result = error
        set_result(self, result)

    return set_checked


def _raise(error: BaseException) -> NoReturn:
    raise error


def _continued(then: Callable) -> Callable:
    @functools.wraps(then)
    def then_checked(self: Any, callback: Callable) -> Any:
        gpus = _expected.get(self, ())
        if not gpus:
            return then(self, callback)

        def checked(done: Any) -> Any:
            result = callback(done)
            check_among(result, gpus)
            return result

        child = then(self, checked)
        expect(child, gpus)
        return child

    return then_checked
