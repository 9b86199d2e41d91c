"""Random numbers: one generator per virtual GPU, independent of the CPU's and of the other devices.

A generator has the state of CUDA's Philox: a seed and an offset, 16 bytes, and every operator that draws moves the
offset on. By default the numbers are not Philox's but the CPU's Mersenne twister's, started afresh for each operator
from seed and offset: seeds reproduce, and so does any state that was kept, while values differ from real GPUs, and from
those that the CPU draws for the same seed. With `random="cuda"` they are those that a GPU draws, for more time
(operators/drawing.py).
"""

from __future__ import annotations

import contextlib
import struct
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch

from vgpu.base.patches import Patches
from vgpu.machine import captures, devices, ranks

_STATE = struct.Struct("<QQ")  # seed and offset
_STEP = 4  # an operator of CUDA's advances the offset by a multiple of this
DEFAULT_SEED = 67280421310721  # of every default generator of PyTorch that nobody has seeded
STREAMS = ("cpu", "cuda")  # whose numbers: the first is the default

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
    "rrelu_with_noise",
    "rrelu_with_noise_",
    "_sample_dirichlet",
    "_standard_gamma",
)


class _Drawing(threading.local):
    """Whether this thread runs an operator on behalf of a virtual tensor, whose host lies on the CPU."""

    inside = False


_drawing = _Drawing()
_chosen = [STREAMS[0]]
_lock = threading.RLock()
_BARE = torch.device("cuda")
_generators: dict[int, VirtualGenerator] = {}
_default = torch.default_generator
_set_rng_state = torch.random.set_rng_state
_stand_ins: list[Any] = []  # for the CPU's default generator, while ranks are threads
CPUGenerator = torch.Generator


class _GeneratorType(type(CPUGenerator)):  # type: ignore[misc]
    """Makes every generator an instance of what stands in `torch.Generator`."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, CPUGenerator)


class VirtualGenerator(CPUGenerator, metaclass=_GeneratorType):
    """`torch.Generator(device)`: a CPU generator that knows the device it was made for.

    For a virtual GPU, seed and offset are the state; what the twister beneath holds between two operators is not.
    """

    _ordinal: int | None
    _home: torch.device
    _seed: int
    _offset: int

    def __new__(cls, device: Any = "cpu") -> VirtualGenerator:
        made = super().__new__(cls)
        made._ordinal = devices.ordinal_of(device)
        made._home = devices.CPU if made._ordinal is None else devices.PUBLIC[made._ordinal]
        made._seed, made._offset = DEFAULT_SEED, 0
        if made._ordinal is not None:
            if device in ("cuda", _BARE):
                made._home = _BARE  # PyTorch keeps what it was given, and only the kind of device matters
            _known[made._cdata] = made  # type: ignore[attr-defined]
        return made

    def __init__(self, device: Any = "cpu") -> None:
        super().__init__()

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        """`cuda:k` for a generator of virtual GPU k, or `cuda` where nobody has said which."""
        return self._home

    def manual_seed(self, seed: int) -> VirtualGenerator:
        """Start from `seed`, at offset 0."""
        self._forbid("Cannot call CUDAGeneratorImpl::set_current_seed")
        super().manual_seed(seed)  # refuses what is not a seed
        self._seed, self._offset = seed % (1 << 64), 0
        return self

    def seed(self) -> int:
        """Start from a seed that the operating system chooses, and return it."""
        self._forbid("Cannot call CUDAGeneratorImpl::seed")
        self._seed, self._offset = super().seed(), 0
        return self._seed

    def initial_seed(self) -> int:
        """The seed that the generator started from."""
        self._forbid("Cannot call CUDAGeneratorImpl::current_seed")
        return super().initial_seed() if self._ordinal is None else self._seed

    def get_state(self) -> torch.Tensor:
        """Seed and offset, 8 bytes each; on the CPU, the twister's 5056 bytes."""
        self._forbid("Cannot call CUDAGeneratorImpl::current_seed")
        if self._ordinal is None:
            return super().get_state()
        return torch.frombuffer(bytearray(_STATE.pack(self._seed, self._offset)), dtype=torch.uint8)

    def set_state(self, new_state: torch.Tensor) -> VirtualGenerator:
        """Go on from a state of `get_state`. Raises TypeError or RuntimeError, in CUDA's words, for anything else."""
        self._forbid("Please ensure to utilize the CUDAGeneratorImpl::set_state_index method during capturing.")
        _check_state(new_state)
        if self._ordinal is None:
            super().set_state(new_state)
            return self
        if new_state.numel() not in (_STATE.size, _STATE.size // 2):  # the second kind has no offset
            raise RuntimeError("RNG state is wrong size")
        kept = bytes(new_state.tolist()).ljust(_STATE.size, b"\0")
        self._seed, self._offset = _STATE.unpack(kept)
        return self

    def graphsafe_get_state(self) -> VirtualGenerator:
        """A generator in the state that this one has now."""
        return self.clone_state()

    def graphsafe_set_state(self, state: CPUGenerator) -> VirtualGenerator:
        """Go on from the state of another generator."""
        return self.set_state(state.get_state())

    def clone_state(self) -> VirtualGenerator:
        """A new generator of the same device in the same state."""
        return VirtualGenerator(self._home).set_state(self.get_state())

    def __reduce__(self) -> Any:
        """Pickle and copy as PyTorch does, which has the device from C++."""
        offset = None if self._ordinal is None else self._offset
        return type(self), (self.device,), (self.initial_seed(), offset, self.get_state())

    def __setstate__(self, state: tuple) -> None:
        self.set_state(state[-1])

    def get_offset(self) -> int:
        """How far the numbers drawn from the seed have gone. Raises RuntimeError on the CPU."""
        self._forbid("Cannot call CUDAGeneratorImpl::get_offset")
        return super().get_offset() if self._ordinal is None else self._offset  # type: ignore[misc]

    def set_offset(self, offset: int) -> VirtualGenerator:
        """Go to an offset, a multiple of 4. Raises RuntimeError on the CPU."""
        self._forbid("Cannot call CUDAGeneratorImpl::set_offset")
        if self._ordinal is None:
            super().set_offset(offset)  # type: ignore[misc]
        if offset % _STEP:
            raise RuntimeError("offset must be a multiple of 4")
        self._offset = offset
        return self

    def _forbid(self, attempt: str) -> None:
        """Raise where a graph is captured: the numbers of a graph begin where the generator is at each replay."""
        if self._ordinal is not None:
            captures.forbid(attempt)

    @property
    def position(self) -> tuple[int, int]:
        """Seed and offset, which a graph that is captured puts back."""
        return self._seed, self._offset

    @position.setter
    def position(self, position: tuple[int, int]) -> None:
        self._seed, self._offset = position

    def start_draw(self, steps: int) -> None:
        """Start the twister for one operator, and move the offset on."""
        super().manual_seed(twister_seed(*self.advance(steps)))

    def advance(self, steps: int) -> tuple[int, int]:
        """Move the offset on by so much, or up to the next multiple of 4, and return the seed and the offset before."""
        before = self._offset
        self._offset += -(-steps // _STEP) * _STEP
        return self._seed, before


# What a program prints and compares is the name of a generator's class.
VirtualGenerator.__module__, VirtualGenerator.__name__, VirtualGenerator.__qualname__ = (
    "torch",
    "Generator",
    "Generator",
)


def twister_seed(seed: int, offset: int = 0) -> int:
    """A seed of 32 bits, which is all the twister reads; every bit of both counts (MurmurHash3's last step).

    At offset 0, too, it is not `seed` itself, because a GPU does not draw what the CPU draws with the same seed.
    """
    mixed = (seed ^ ((offset + 1) * 0x9E3779B97F4A7C15)) % (1 << 64)
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        mixed = ((mixed ^ (mixed >> 33)) * factor) % (1 << 64)
    return mixed >> 32


# C++ hands operators a fresh Python object for the generator it was given; its address tells which one it is.
_known: weakref.WeakValueDictionary[int, VirtualGenerator] = weakref.WeakValueDictionary()


def check(stream: str | None) -> str | None:
    """Return whose random numbers are wanted, or None for the default.

    Raises:
        ValueError: if there are none of that name.
    """
    if stream is not None and stream not in STREAMS:
        raise ValueError(f"random must be one of {', '.join(STREAMS)}, got {stream!r}")
    return stream


def configure(stream: str | None) -> None:
    """Let every virtual GPU draw these numbers."""
    _chosen[0] = check(stream) or STREAMS[0]


def chosen() -> str:
    """Whose numbers they draw."""
    return _chosen[0]


def install(patches: Patches) -> None:
    """Replace `torch.Generator`, give each device its default generator, and watch who draws from it."""
    _generators.clear()
    patches.set(torch, "Generator", VirtualGenerator)
    patches.set(torch.cuda, "default_generators", tuple(generator(k) for k in range(devices.total())))
    for module in (torch, torch.random):
        patches.functions(module, "", set_rng_state)
    _refuse_on_cpu(patches)


def set_rng_state(new_state: torch.Tensor) -> None:
    """`torch.set_rng_state`: to C++ a state on a virtual GPU is one on the CPU, so it is refused here, as CUDA does.

    Raises TypeError if `new_state` is not a tensor of bytes on the CPU.
    """
    _check_state(new_state)
    _set_rng_state(new_state)


def _check_state(state: torch.Tensor) -> None:
    if not isinstance(state, torch.Tensor):
        raise TypeError(f"expected a torch.ByteTensor, but got {type(state).__name__}")
    if state.dtype is not torch.uint8 or state.is_cuda:
        raise TypeError("RNG state must be a torch.ByteTensor")


def _refuse_on_cpu(patches: Patches) -> None:
    """Let operators on CPU tensors refuse a virtual GPU's generator, which is a CPU generator to C++."""
    for name in _TAKE_GENERATORS:
        packet = getattr(torch.ops.aten, name)
        for overload in packet.overloads():
            op = getattr(packet, overload)
            if "out" not in overload and any(a.name == "generator" for a in op._schema.arguments):
                qualified = name if overload == "default" else f"{name}.{overload}"
                patches.kernel(qualified, _on_cpu(op.redispatch), "BackendSelect")
    in_order = torch.ops.aten.randperm.generator_out  # in which every form of `randperm` ends
    patches.kernel("randperm.generator_out", _on_cpu(in_order.redispatch), "BackendSelect")


def _on_cpu(redispatch: Callable) -> Callable:
    cpu_keys = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)

    def draw(*args: Any, generator: Any = None, **kwargs: Any) -> Any:
        given = (*args, *kwargs.values())
        backend = next((x.device.type for x in given if isinstance(x, torch.Tensor)), "cpu")
        if backend != "cpu":  # meta, say: none of our business
            keys = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, torch._C._dispatch_key_for_device(backend)))
            return redispatch(keys, *args, generator=generator, **kwargs)
        if generator is not None and not _drawing.inside and generator._cdata in _known:
            raise RuntimeError("Expected a 'cpu' device type for generator but found 'cuda'")
        if ranks.here() is not None and not _drawing.inside and _is_default(generator):
            generator = of_cpu()
        return redispatch(cpu_keys, *args, generator=generator, **kwargs)

    return draw


def of_cpu() -> CPUGenerator:
    """The CPU's default generator: that of the process, or of this rank where ranks are threads."""
    return ranks.own("generator of the CPU", CPUGenerator, _default)


def stands_for_default(generator: CPUGenerator | None) -> None:
    """Let a generator mean the CPU's default one where operators are given it, or (None) no longer any."""
    _stand_ins[:] = [] if generator is None else [generator]


def _is_default(generator: Any) -> bool:
    return generator is None or any(generator._cdata == one._cdata for one in _stand_ins)


def generator(ordinal: int) -> VirtualGenerator:
    """The default generator of one device."""
    known = ranks.own("generators of GPUs", dict, _generators)
    if ordinal not in known:
        made = VirtualGenerator(devices.INTERNAL[ordinal])
        made.manual_seed(DEFAULT_SEED)
        known[ordinal] = made
    return known[ordinal]


# What decides, in operators that draw for dropout, whether they draw at all: a probability of 0 and "not in training".
_PROBABILITIES = ("dropout_p", "dropout")
_IN_TRAINING = ("train", "training")


def draws(func: torch._ops.OpOverload) -> Callable[[tuple, dict | None], bool] | None:
    """Whether a call of an operator draws, given its arguments; None for the operators that never do.

    Without dropout CUDA's kernels leave the generator where it was: those of dropout itself, and those of attention
    (flash_api.cpp and attention.cu in aten/src/ATen/native/transformers/cuda).
    """
    if torch.Tag.nondeterministic_seeded not in func.tags:
        return None
    arguments = func._schema.arguments
    places = [(i, a.name) for i, a in enumerate(arguments) if a.name in (*_PROBABILITIES, *_IN_TRAINING)]

    def draws_now(args: tuple, kwargs: dict | None) -> bool:
        for place, name in places:
            given = args[place] if place < len(args) else (kwargs or {}).get(name, arguments[place].default_value)
            if given is False or (given == 0 and name in _PROBABILITIES):
                return False
        return True

    return draws_now


def drawn_from(ordinal: int, given: Any) -> VirtualGenerator:
    """The generator that an operator draws from: the one it was given, or the default one of its device."""
    if given is not None and given._cdata not in _known:
        raise RuntimeError("Expected a 'cuda' device type for generator but found 'cpu'")
    return generator(ordinal) if given is None else _known[given._cdata]


@contextlib.contextmanager
def drawing_on(ordinal: int, kwargs: dict[str, Any], takes_generator: bool, steps: int = _STEP) -> Iterator[None]:
    """Let the operator called inside draw from the device's generator and leave the CPU's where it was."""
    outer, _drawing.inside = _drawing.inside, True
    try:
        with _lock:
            if takes_generator:
                own = kwargs["generator"] = drawn_from(ordinal, kwargs.get("generator"))
                own.start_draw(steps)
                yield
            else:
                yield from _drawing_as_default(generator(ordinal), steps)
    finally:
        _drawing.inside = outer


def _drawing_as_default(own: VirtualGenerator, steps: int) -> Iterator[None]:
    """Give the process's default generator the state of `own` for one operator, which draws from no other."""
    before = _default.get_state()
    own.start_draw(steps)
    _default.set_state(CPUGenerator.get_state(own))
    try:
        yield
    finally:
        _default.set_state(before)
