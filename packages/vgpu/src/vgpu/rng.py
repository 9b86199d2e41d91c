"""Random numbers: one generator per virtual GPU, independent of the CPU's and of the other devices.

The streams are those of the CPU's Mersenne twister, not CUDA's Philox: seeds reproduce, values differ from real GPUs.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch

from vgpu import devices
from vgpu.patches import Patches

DEFAULT_SEED = 67280421310721  # of every default generator of PyTorch that nobody has seeded

# Operators that draw from a generator they are given; factories such as `torch.rand` end in one of them.
_TAKE_GENERATORS = (
    # in place
    "bernoulli_",
    "cauchy_",
    "exponential_",
    "geometric_",
    "log_normal_",
    "normal_",
    "random_",
    "uniform_",
    # into a new tensor, of the shape of an argument
    "bernoulli",
    "binomial",
    "multinomial",
    "normal",
    "poisson",
)


class _Drawing(threading.local):
    """Whether this thread runs an operator on behalf of a virtual tensor, whose host lies on the CPU."""

    inside = False


_drawing = _Drawing()
_lock = threading.RLock()
_generators: dict[int, VirtualGenerator] = {}
_CGenerator = torch.Generator


class _GeneratorType(type(_CGenerator)):  # type: ignore[misc]
    """Makes every generator an instance of what stands in `torch.Generator`."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _CGenerator)


class VirtualGenerator(_CGenerator, metaclass=_GeneratorType):
    """`torch.Generator(device)`: a CPU generator that knows the device it was made for."""

    _ordinal: int | None

    def __new__(cls, device: Any = "cpu") -> VirtualGenerator:
        made = super().__new__(cls)
        made._ordinal = devices.ordinal_of(device)
        if made._ordinal is not None:
            _known[made._cdata] = made  # type: ignore[attr-defined]
        return made

    def __init__(self, device: Any = "cpu") -> None:
        super().__init__()

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        """`cuda:k` for a generator of virtual GPU k."""
        return devices.CPU if self._ordinal is None else devices.PUBLIC[self._ordinal]


# C++ hands operators a fresh Python object for the generator it was given; its address tells which one it is.
_known: weakref.WeakValueDictionary[int, VirtualGenerator] = weakref.WeakValueDictionary()


def install(patches: Patches) -> None:
    """Replace `torch.Generator`, give each device its default generator, and watch who draws from it."""
    _generators.clear()
    patches.set(torch, "Generator", VirtualGenerator)
    patches.set(torch.cuda, "default_generators", tuple(generator(k) for k in range(devices.total())))
    _refuse_on_cpu(patches)


def _refuse_on_cpu(patches: Patches) -> None:
    """Let operators on CPU tensors refuse a virtual GPU's generator, which is a CPU generator to C++."""
    for name in _TAKE_GENERATORS:
        packet = getattr(torch.ops.aten, name)
        for overload in packet.overloads():
            op = getattr(packet, overload)
            if "out" not in overload and any(a.name == "generator" for a in op._schema.arguments):
                qualified = name if overload == "default" else f"{name}.{overload}"
                patches.kernel(qualified, _on_cpu(op.redispatch), "BackendSelect")


def _on_cpu(redispatch: Callable) -> Callable:
    cpu_keys = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)

    def draw(*args: Any, generator: Any = None, **kwargs: Any) -> Any:
        backend = next((x.device.type for x in args if isinstance(x, torch.Tensor)), "cpu")
        if backend != "cpu":  # meta, say: none of our business
            keys = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, torch._C._dispatch_key_for_device(backend)))
            return redispatch(keys, *args, generator=generator, **kwargs)
        if generator is not None and not _drawing.inside and generator._cdata in _known:
            raise RuntimeError("Expected a 'cpu' device type for generator but found 'cuda'")
        return redispatch(cpu_keys, *args, generator=generator, **kwargs)

    return draw


def generator(ordinal: int) -> VirtualGenerator:
    """The default generator of one device."""
    if ordinal not in _generators:
        made = VirtualGenerator(devices.INTERNAL[ordinal])
        made.manual_seed(DEFAULT_SEED)
        _generators[ordinal] = made
    return _generators[ordinal]


@contextlib.contextmanager
def drawing_on(ordinal: int, kwargs: dict[str, Any], takes_generator: bool) -> Iterator[None]:
    """Let the operator called inside draw from the device's generator and leave the CPU's where it was."""
    given = kwargs.get("generator")
    if given is not None and given._cdata not in _known:
        raise RuntimeError("Expected a 'cuda' device type for generator but found 'cpu'")
    if takes_generator:
        kwargs["generator"] = generator(ordinal) if given is None else given
        outer, _drawing.inside = _drawing.inside, True
        try:
            with _lock:
                yield
        finally:
            _drawing.inside = outer
        return
    shared, own = torch.default_generator, generator(ordinal)
    with _lock:
        before = shared.get_state()
        shared.set_state(own.get_state())
        try:
            yield
        finally:
            own.set_state(shared.get_state())
            shared.set_state(before)
