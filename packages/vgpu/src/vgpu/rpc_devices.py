"""The device maps of RPC: kept here, because TensorPipe's C++ would open CUDA streams for the devices they name.

TensorPipe is told of no map and no device, and carries tensors of the CPU (rpc_tensors.py). PyTorch's own Python code
reads the maps from here and checks them, in its words, when the workers meet.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from vgpu import errors
from vgpu.devices import CPU
from vgpu.patches import Patches

__tracebackhide__ = True  # a user's traceback, in pytest and in a diagnosis, ends in the user's own line

Map = dict[torch.device, torch.device]


class _Options(NamedTuple):
    maps: dict[str, Map]  # by the name of the callee
    devices: list[torch.device]


class _Worker:
    """What TensorPipe would know of this worker's devices."""

    name = ""
    options: Any = None  # the object with which the program called `init_rpc`
    maps: dict[str, Map] = {}  # noqa: RUF012 - by the callee
    inverses: dict[str, Map] = {}  # noqa: RUF012 - of the maps of others for this worker, by the caller
    devices: tuple[torch.device, ...] = ()  # those in its maps, in the maps of others for it, and in the option


_worker = _Worker()
_options: weakref.WeakKeyDictionary[Any, _Options] = weakref.WeakKeyDictionary()


def install(patches: Patches, rpc: Any) -> None:
    """Keep maps and devices from C++, of the options and of the agent."""
    options, agent = rpc._TensorPipeRpcBackendOptionsBase, rpc.TensorPipeAgent
    native = options.device_maps, options.devices
    patches.set(options, "__init__", _options_made(options.__init__))
    patches.set(options, "device_maps", property(lambda self: {to: dict(m) for to, m in _of(self).maps.items()}))
    patches.set(options, "_set_device_map", lambda self, to, more: _of(self).maps.setdefault(to, {}).update(more))
    patches.set(options, "devices", property(lambda self: list(_of(self).devices), _set_devices))
    patches.set(agent, "__init__", _agent_made(agent.__init__, native))
    patches.set(agent, "_get_device_map", lambda self, to: dict(_worker.maps.get(to.name, {})))
    patches.set(agent, "_get_backend_options", lambda self: _worker.options)
    patches.set(agent, "_update_group_membership", _joined(agent._update_group_membership))
    patches.on_restore(_forget)


def _of(options: Any) -> _Options:
    return _options.setdefault(options, _Options({}, []))


def _set_devices(options: Any, devices: list[torch.device]) -> None:
    _of(options).devices[:] = devices


def _options_made(make: Callable) -> Callable:
    @functools.wraps(make)
    def __init__(self: Any, *args: Any) -> None:
        *others, maps, given = args
        make(self, *others, {}, [])
        _options[self] = _Options({to: dict(one) for to, one in maps.items()}, list(given))

    return __init__


def _agent_made(make: Callable, native: tuple[property, property]) -> Callable:
    @functools.wraps(make)
    def __init__(self: Any, store: Any, name: str, rank: int, size: Any, options: Any, *known: Any) -> None:
        inverses, gpus = known
        if any(kept.fget(options) for kept in native):  # type: ignore[misc]
            raise errors.not_simulated("device maps of RPC that were made before virtual GPUs were enabled")
        _worker.name, _worker.options = name, options
        _worker.maps, _worker.inverses, _worker.devices = options.device_maps, dict(inverses), tuple(gpus)
        make(self, store, name, rank, size, options, {}, [])

    return __init__


def _joined(update: Callable) -> Callable:
    @functools.wraps(update)
    def _update_group_membership(self: Any, info: Any, given: Any, reverse: Any, is_join: bool) -> Any:
        # What TensorPipe does, too: a map of a worker that joins late is known to it alone, and after one has left,
        # those who stay have lost theirs.
        known = set(_worker.devices)
        if is_join:
            known |= set(given)
            _worker.inverses = {**reverse, **_worker.inverses}
        else:
            known &= set(given)
            _worker.inverses = {name: one for name, one in _worker.inverses.items() if name in reverse}
        _worker.devices = tuple(sorted(known, key=lambda device: device.index))
        return update(self, info, [], {}, is_join)

    return _update_group_membership


def _forget() -> None:
    _worker.name, _worker.options, _worker.devices = "", None, ()
    _worker.maps, _worker.inverses = {}, {}


def name() -> str:
    """The name of this worker; empty where RPC was not started since virtual GPUs were enabled."""
    return _worker.name


def devices() -> tuple[torch.device, ...]:
    """The GPUs for which RPC is prepared in this worker."""
    return _worker.devices


def moves_cpu_tensors(to: str) -> bool:
    """True where the map for a callee sends tensors of the CPU to a GPU."""
    return _worker.maps.get(to, {}).get(CPU, CPU) != CPU


def at_callee(to: str, device: torch.device) -> torch.device:
    """The device on which a callee gets a tensor of a request; RuntimeError in TensorPipe's words if there is none."""
    return _mapped(_worker.maps.get(to), device, "Request", to)


def inverses() -> dict[str, Map]:
    """The inverses of the maps that others have for this worker: where its answers are to arrive, by the caller."""
    return _worker.inverses


def at_caller(known: dict[str, Map], device: torch.device) -> torch.device:
    """The device on which this worker gets a tensor of an answer; RuntimeError in TensorPipe's words if there is none.

    On GPUs the worker that answers raises, and the caller is told. Here the answering worker sends what it knows, for
    only the caller knows whom the answer is for.

    Args:
        known: `inverses()` of the worker that answers.
        device: where it has the tensor.
    """
    return _mapped(known.get(_worker.name), device, "Response", _worker.name)


def _mapped(chosen: Map | None, device: torch.device, what: str, destination: str) -> torch.device:
    if device == CPU:
        return CPU if chosen is None else chosen.get(CPU, CPU)
    if chosen is None:
        raise RuntimeError(f"{_unavailable(what, destination)}, but found tensor on device: {device}")
    if device not in chosen:  # tensorpipe_agent.cpp puts one message into the other
        text = _unavailable("Request", _unavailable(what, destination))
        raise RuntimeError(f"{text} for device {device} but received a tensor on that device.")
    return chosen[device]


def _unavailable(what: str, destination: str) -> str:
    return (
        "TensorPipe RPC backend only supports CPU tensors by default, please move your tensors to CPU before sending "
        "them over RPC, or call `set_device_map` on `TensorPipeRpcBackendOptions` to explicitly configure device "
        f"mapping. {what} device mapping is not available for destination {destination}"
    )
