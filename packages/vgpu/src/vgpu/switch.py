"""On and off: install all patches of the virtual GPUs, and take all of them away again."""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import warnings
from collections.abc import Iterator
from typing import Any

import torch

from vgpu.attention import scaled_dot_product
from vgpu.base import errors as words
from vgpu.base import tracebacks
from vgpu.base.patches import Patches
from vgpu.compiling import compiler, fake, higher_order, kernels, torchscript
from vgpu.cuda import legacy, snapshots, surface, unsimulated
from vgpu.distributed import backends, batch_norm, comm, threads
from vgpu.graphs import cuda_graph
from vgpu.machine import contexts, devices, profiles, ranks, rng
from vgpu.machine import memory as accounts
from vgpu.machine import triton as interpreter
from vgpu.observing import profiler
from vgpu.operators import autocast, backward, dispatch, drawing, fft, otherwise, recurrent, vision
from vgpu.racing import watch
from vgpu.starting import banner, inherit, processes
from vgpu.tensors import dlpack, factories, integers, lazy, methods, serialization, storages, subclasses

TESTED = ("2.11", "2.12", "2.13", "2.14", "2.15")

_patches = Patches()


def enable(
    gpus: int | None = None,
    force: bool = False,
    memory: int | str | None = None,
    profile: str | None = None,
    errors: str | None = None,
    random: str | None = None,
    triton: str | None = None,
) -> None:
    """Give this process `gpus` virtual GPUs, `cuda:0` to `cuda:gpus-1`, until `disable()`.

    A second call with the same number does nothing; with a different one it changes the machine. Real GPUs are hidden
    until then, which one line on stderr says. Programs that this process starts have the GPUs, too, because its
    environment names them. No other thread may compute meanwhile, nor during `disable`: PyTorch's
    dispatcher has no lock for kernels that come and go.

    Args:
        gpus: 1 to 64; without it, what the environment variable VGPUS says.
        force: accepted from programs that were written when real GPUs needed it; it has no effect.
        memory: of each GPU, in bytes or as text such as "64MiB"; more raises OutOfMemoryError. By default that of
            the profile, or a share of the host's: three quarters of it between all, at most 16 GiB each.
        profile: a GPU whose name, memory, capability and multiprocessors they have: t4, a100-40, a100-80, h100, h200,
            rtx4090.
        errors: when an index out of range, or what else only a kernel can see, is an error: "early", at its line and
            in the CPU's words, or "late", at the next wait for the device, as on GPUs, whose context has then ended.
            By default late.
        random: whose random numbers they draw: "cpu", the default, for the CPU's generator, which each device begins
            in a way of its own, or "cuda", for those that a GPU draws, which takes longer.
        triton: "interpret" lets Triton's own interpreter run the kernels that are defined from now on, on the CPU; it
            does not see what they do out of bounds, nor races. By default they are refused by name.

    Raises:
        TypeError, ValueError: for a bad `gpus`, `memory`, `profile`, `errors`, `random` or `triton`.
    """
    gpus, capacity = check_gpus(gpus), accounts.parse_bytes(memory)
    chosen = (
        capacity,
        profiles.check(profile),
        contexts.check(errors),
        rng.check(random),
        interpreter.check(triton),
    )
    total, _, *now = _machine()
    if gpus == total and all(new in (None, old) for new, old in zip(chosen, now, strict=True)):
        return
    if not is_enabled():
        banner.say_what_is_hidden()
    _say_what_is_left(gpus)
    # An empty value hides the real GPUs; read as a wish about virtual ones it would leave none.
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    start(gpus, visible if visible in ("", "-1") else None, *chosen)


def _say_what_is_left(gpus: int) -> None:
    """Warn of tensors on GPUs that a smaller machine no longer has: they go on computing, and nothing counts them."""
    if any(accounts.held(ordinal)[0] for ordinal in range(gpus, devices.total())):
        gc.collect()
        lost = [f"cuda:{ordinal}" for ordinal in range(gpus, devices.total()) if accounts.held(ordinal)[0]]
        if lost:
            words.note(f"of {devices.total()} GPUs {gpus} are left, and there are tensors on {', '.join(lost)}")


def start_if_changed(gpus: int, ignored: str | None = None) -> None:
    """`enable` for a program that chooses its machine itself, and says so itself where it hides real GPUs.

    A second call with the same arguments does nothing, so tensors and the current device stay as they are.

    Args:
        gpus: 1 to 64.
        ignored: a value of CUDA_VISIBLE_DEVICES that was meant for real GPUs and hides no virtual one, or None.
    """
    if check_gpus(gpus) != devices.total() or ignored != devices.ignored():
        start(gpus, ignored)


def start(
    gpus: int,
    ignored: str | None,
    capacity: int | None = None,
    profile: str | None = None,
    errors: str | None = None,
    random: str | None = None,
    triton: str | None = None,
) -> None:
    """`enable` without its checks.

    Args:
        gpus: 1 to 64.
        ignored: a value of CUDA_VISIBLE_DEVICES that is not meant for virtual GPUs.
        capacity, profile, errors, random, triton: what the checks have found, with the memory of each GPU in bytes.

    Raises:
        AttributeError: if this version of PyTorch lacks a name that would be replaced. Nothing is replaced then.
    """
    disable()
    _warn_if_untested()
    devices.configure(gpus, ignored)
    profiles.configure(profile)
    contexts.configure(errors)
    rng.configure(random)
    interpreter.configure(triton)
    accounts.configure(profiles.current().total_memory if capacity is None else capacity, gpus)
    try:
        _install(_patches)
        _patches.on_restore(inherit.tell(inherit.for_children(gpus, capacity, profile, errors, random, triton)))
    except BaseException:
        disable()
        raise


def _install(patches: Patches) -> None:
    """Replace everything. One order matters, that of the first two: the others could stand in any order."""
    # integers.py leaves alone what factories.py has wrapped: wrapped twice, torch.export would not recognise it.
    factories.install(patches)
    integers.install(patches)
    # Devices, and what belongs to each.
    surface.install(patches)
    snapshots.install(patches)
    rng.install(patches)
    comm.install(patches)
    threads.install(patches)
    # Tensors, their operators and methods, and modules.
    dispatch.install(patches)
    drawing.install(patches)
    fft.install(patches)
    methods.install(patches)
    storages.install(patches)
    dlpack.install(patches)
    subclasses.install(patches)
    legacy.install(patches)
    lazy.install(patches)
    batch_norm.install(patches)
    scaled_dot_product.install(patches)
    otherwise.install(patches)
    # Autograd and autocast.
    backward.install(patches)
    autocast.install(patches)
    vision.install(patches)
    recurrent.install(patches)
    # Files and processes.
    serialization.install(patches)
    processes.install(patches)
    backends.install(patches)
    # Programs that are traced or compiled.
    compiler.install(patches)
    fake.install(patches)
    higher_order.install(patches)
    kernels.install(patches)
    torchscript.install(patches)
    profiler.install(patches)
    cuda_graph.install(patches)
    # What no file above provides.
    unsimulated.install(patches)
    # What is printed of an error.
    tracebacks.install(patches)


def start_child(*machine: Any) -> None:
    """`start` in a child of `multiprocessing`, which is watched for races if its parent is."""
    start(*machine)
    watch.begin_if_told()


processes.Switch.start = staticmethod(start_child)


def disable() -> None:
    """Take the virtual GPUs away and put back every attribute of PyTorch that was replaced.

    Raises:
        RuntimeError: if a rank of `vgpu.ranks` calls it: the others are threads that use the same GPUs.
    """
    if ranks.here() is not None:
        raise RuntimeError("a rank of vgpu.ranks cannot change the virtual GPUs: the other ranks use them, too")
    _patches.restore()
    devices.configure(0, None)
    profiles.configure(None)
    contexts.configure(None)
    rng.configure(None)
    interpreter.configure(None)


def is_enabled() -> bool:
    """True while this process has virtual GPUs."""
    return devices.total() > 0


@contextlib.contextmanager
def virtual_gpus(
    gpus: int | None = None,
    force: bool = False,
    memory: int | str | None = None,
    profile: str | None = None,
    errors: str | None = None,
    random: str | None = None,
    triton: str | None = None,
) -> Iterator[list[torch.device]]:
    """Give the block `gpus` virtual GPUs (arguments as for `enable`); afterwards everything is as before.

    Yields:
        the devices, `[cuda:0, ...]`.
    """
    before = _machine()
    enable(gpus, memory=memory, profile=profile, errors=errors, random=random, triton=triton)
    try:
        yield list(devices.PUBLIC[: devices.total()])
    finally:
        if before[0] == 0:
            disable()
        elif before != _machine():
            start(*before)


def _machine() -> tuple[int, str | None, int, str | None, str | None, str, str | None]:
    """The machine of now, as arguments of `start`."""
    chosen = accounts.capacity(), profiles.chosen(), contexts.chosen(), rng.chosen(), interpreter.chosen()
    return devices.total(), devices.ignored(), *chosen


def check_gpus(gpus: int | None) -> int:
    """Return `gpus` if it is a possible number of virtual GPUs, else raise TypeError or ValueError."""
    named = os.environ.get(inherit.GPUS) if gpus is None else None
    if named:
        gpus = int(named) if named.isdecimal() else 0
        if not 1 <= gpus <= devices.MAX_GPUS:
            raise ValueError(f"{inherit.GPUS} must be a number from 1 to {devices.MAX_GPUS}, it is {named!r}")
    if isinstance(gpus, bool) or not isinstance(gpus, int):
        raise TypeError(f"gpus must be an int from 1 to {devices.MAX_GPUS}, got {gpus!r} ({type(gpus).__name__})")
    if not 1 <= gpus <= devices.MAX_GPUS:
        raise ValueError(f"gpus must be from 1 to {devices.MAX_GPUS}, got {gpus}")
    return gpus


@functools.cache
def _warn_if_untested() -> None:
    version = ".".join(torch.__version__.split(".")[:2])
    if version not in TESTED:
        warnings.warn(
            f"virtual GPUs are tested with torch {TESTED[0]} to {TESTED[-1]}, this is {torch.__version__}", stacklevel=4
        )
