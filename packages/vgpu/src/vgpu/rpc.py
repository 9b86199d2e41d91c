"""`torch.distributed.rpc`: tensors of virtual GPUs travel where the device maps send them.

TensorPipe and the rest of RPC's C++ run as they are and see tensors of the CPU (rpc_tensors.py). A tensor goes to the
device that the caller's map for the callee names, answers come back by its inverse (rpc_devices.py). C++ takes the
arguments of operators and of TorchScript's functions apart itself and would see no device, so calls with such tensors
go the way of Python functions.
"""

from __future__ import annotations

import functools
import pickle
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from vgpu import errors, futures, rpc_devices, rpc_tensors, tensor
from vgpu.patches import Patches
from vgpu.tensor import is_virtual

__tracebackhide__ = True  # a user's traceback, in pytest and in a diagnosis, ends in the user's own line


SINCE = (2, 15)  # the version of torch whose RPC is known to be made of the parts that are replaced here
OLDER = tuple(int(part) for part in torch.__version__.split(".")[:2]) < SINCE


def install(patches: Patches) -> None:
    """Send tensors by the device maps; on an older torch, refuse RPC by name."""
    patches.when_imported("torch.distributed.rpc", functools.partial(_refuse if OLDER else _install, patches))


def _refuse(patches: Patches, rpc: Any) -> None:
    if not rpc.is_available():
        return

    @functools.wraps(rpc.init_rpc)
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise errors.not_simulated(f"RPC on torch {torch.__version__}; on torch {'.'.join(map(str, SINCE))} they do")

    patches.set(rpc, "init_rpc", refuse)


def _install(patches: Patches, rpc: Any) -> None:
    if not rpc.is_available() or not hasattr(rpc, "TensorPipeRpcBackendOptions"):  # not everywhere is TensorPipe
        return
    rpc_devices.install(patches, rpc)
    internal, api = rpc.internal, rpc.api
    patches.set(internal, "_pickler", _Pickler)
    pickler = internal._InternalRPCPickler
    patches.set(pickler, "serialize", _serializing(pickler.serialize, internal.PythonUDF))
    patches.set(pickler, "deserialize", _deserializing(pickler.deserialize, internal.PythonUDF))
    patches.set(internal, "_run_function", _running(internal._run_function))
    send = _answering(_sending(api._invoke_rpc_python_udf))
    remote = _sending(api._invoke_remote_python_udf)
    patches.set(api, "_invoke_rpc_python_udf", send)
    patches.set(api, "_invoke_remote_python_udf", remote)
    patches.set(api, "_invoke_rpc_builtin", _of_operator(api._invoke_rpc_builtin, send, api))
    patches.set(api, "_invoke_remote_builtin", _of_operator(api._invoke_remote_builtin, remote, api))
    patches.set(api, "_invoke_rpc_torchscript", _of_script(api._invoke_rpc_torchscript, send, api))
    patches.set(api, "_invoke_remote_torchscript", _remote_of_script(api._invoke_remote_torchscript))
    for kind in (torch._C.ScriptFunction, torch._C.ScriptMethod):
        patches.set(kind, "__call__", _calling_script(kind.__call__))
    patches.set(rpc.PyRRef, "__init__", _rref_made(rpc.PyRRef.__init__))
    patches.set(torch._jit_internal, "can_compile_class", _compilable(torch._jit_internal.can_compile_class))


class _Pickler(pickle.Pickler):
    """In the place of the pickler that takes arguments and results apart: tensors on virtual GPUs are tensors to it."""

    def reducer_override(self, value: Any) -> Any:
        if type(value) is tensor.VirtualTensor and not getattr(value, "_is_param", False):
            return self.dispatch_table[torch.Tensor](value)
        return NotImplemented


class _Call:
    """A Python function with its arguments, and the tensors among them that autograd is yet to be told of."""

    def __init__(self, call: Any, arrivals: list[rpc_tensors.Arrival]) -> None:
        self.func, self.args, self.kwargs = call
        self.arrivals = arrivals


def _serializing(serialize: Callable, request: type) -> Callable:
    @functools.wraps(serialize)
    def serialize_answer(self: Any, value: Any) -> tuple[bytes, list[torch.Tensor]]:
        pickled, tensors = serialize(self, value)
        if isinstance(value, request) or not tensors:
            return pickled, tensors  # a request is completed below, where it is known who gets it
        if not rpc_devices.name() and any(is_virtual(one) for one in tensors):
            raise errors.not_simulated("answers of RPC that was started before virtual GPUs were enabled")
        where = rpc_tensors.answered(tensors)
        return rpc_tensors.with_devices(pickled, where), [rpc_tensors.carrier(one) for one in tensors]

    return serialize_answer


def _sending(invoke: Callable) -> Callable:
    """`invoke`, which hands a request to C++."""

    @functools.wraps(invoke)
    def send(to: Any, pickled: bytes, tensors: list[torch.Tensor], *how: Any) -> Any:
        if tensors:
            where = rpc_tensors.requested(tensors, to.name)
            pickled = rpc_tensors.with_devices(pickled, where)
        return invoke(to, pickled, [rpc_tensors.carrier(one) for one in tensors], *how)

    return send


def _answering(send: Callable) -> Callable:
    """`send`, which returns the future of an answer: what is chained to it has its tensors on this worker's GPUs."""

    @functools.wraps(send)
    def send_and_expect(*args: Any) -> Any:
        future = send(*args)
        futures.expect(future, rpc_devices.devices())
        return future

    return send_and_expect


def _deserializing(deserialize: Callable, request: type) -> Callable:
    @functools.wraps(deserialize)
    def place_and_deserialize(self: Any, data: bytes, carried: list[torch.Tensor]) -> Any:
        pickled, where = rpc_tensors.split(data)
        if where is None:
            return deserialize(self, data, carried)
        placed, arrivals = rpc_tensors.place(carried, rpc_tensors.destinations(where))
        if isinstance(where, rpc_tensors.Answer):
            for arrival in arrivals:
                arrival.connect()
            return deserialize(self, pickled, placed)
        call = deserialize(self, pickled, placed)
        # C++ tells autograd of a request's tensors after this, and before the function runs.
        return _Call(call, arrivals) if isinstance(call, request) else call

    return place_and_deserialize


def _running(run: Callable) -> Callable:
    @functools.wraps(run)
    def connect_and_run(call: Any) -> Any:
        for arrival in getattr(call, "arrivals", ()):
            arrival.connect()
        result = run(call)
        if isinstance(result, torch._C.Future):
            return futures.for_others(result)
        futures.check_among(result, rpc_devices.devices())
        return result

    return connect_and_run


def _of_operator(invoke: Callable, send: Callable, api: Any) -> Callable:
    """`invoke`, which calls an operator that both workers have, by its name."""

    @functools.wraps(invoke)
    def call(to: Any, name: str, timeout: float, *args: Any, **kwargs: Any) -> Any:
        if not _needs_devices(to.name, args, kwargs):
            return invoke(to, name, timeout, *args, **kwargs)
        request = api.PythonUDF(_run_operator, (name, args, kwargs), {})
        return send(to, *api._default_pickler.serialize(request), timeout, False)

    return call


def _run_operator(name: str, args: tuple, kwargs: dict[str, Any]) -> Any:
    namespace, _, operator = name.partition("::")
    return getattr(getattr(torch.ops, namespace), operator)(*args, **kwargs)


def _of_script(invoke: Callable, send: Callable, api: Any) -> Callable:
    @functools.wraps(invoke)
    def call(to: str, name: str, args: Any, kwargs: Any, timeout: float, is_async: bool) -> Any:
        if not _needs_devices(to, args, kwargs):
            return invoke(to, name, args, kwargs, timeout, is_async)
        if is_async:
            raise _no_script("asynchronous TorchScript functions", name)
        request = api.PythonUDF(_run_script, (name, args, kwargs), {})
        return send(api._to_worker_info(to), *api._default_pickler.serialize(request), timeout, False)

    return call


def _run_script(name: str, args: tuple, kwargs: dict[str, Any]) -> Any:
    return torch.jit._state._python_cu.find_function(name)(*args, **kwargs)


def _remote_of_script(invoke: Callable) -> Callable:
    @functools.wraps(invoke)
    def call(to: str, name: str, timeout: float, is_async: bool, *args: Any, **kwargs: Any) -> Any:
        if _needs_devices(to, args, kwargs):
            raise _no_script("rpc.remote of TorchScript functions", name)
        return invoke(to, name, timeout, is_async, *args, **kwargs)

    return call


def _calling_script(call: Callable) -> Callable:
    """`call` of a TorchScript function: RPC that such a function starts itself never comes to Python."""

    @functools.wraps(call)
    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        on_gpus = rpc_devices.name() and any(map(_is_gpu, tree_leaves((args, kwargs))))
        if on_gpus and "prim::rpc_" in str(self.inlined_graph):
            raise _no_script("RPC that is called in TorchScript", self.name)
        return call(self, *args, **kwargs)

    return __call__


def _no_script(what: str, name: str) -> NotImplementedError:
    return errors.not_simulated(
        f"{what} with tensors on GPUs ({name}); a Python function that calls it can be sent in its place"
    )


def _needs_devices(to: str, args: Any, kwargs: dict[str, Any]) -> bool:
    """True where the arguments of a call hold or name a GPU, or the map sends tensors of the CPU to one."""
    leaves = tree_leaves((args, kwargs))
    if kwargs.get("device") is not None or any(_is_gpu(leaf) for leaf in leaves):
        return True
    return rpc_devices.moves_cpu_tensors(to) and any(isinstance(leaf, torch.Tensor) for leaf in leaves)


def _is_gpu(leaf: Any) -> bool:
    if isinstance(leaf, (str, torch.device)):
        return str(leaf).startswith("cuda")
    return isinstance(leaf, torch.Tensor) and is_virtual(leaf)


class _Making(threading.local):
    """Whether this thread is making a reference to what holds tensors on virtual GPUs."""

    on_gpus = False


_making = _Making()


def _rref_made(make: Callable) -> Callable:
    """`rpc.RRef(value)`, of which C++ would remember that it is a tensor and send it without asking Python."""

    @functools.wraps(make)
    def __init__(self: Any, value: Any, *args: Any, **kwargs: Any) -> None:
        futures.check_among(value, rpc_devices.devices())
        _making.on_gpus = any(isinstance(leaf, torch.Tensor) and is_virtual(leaf) for leaf in tree_leaves(value))
        try:
            make(self, value, *args, **kwargs)
        finally:
            _making.on_gpus = False

    return __init__


def _compilable(can_compile: Callable) -> Callable:
    """What C++ asks first when it looks for TorchScript's type of a value: a class without one is left to Python."""

    @functools.wraps(can_compile)
    def can_compile_class(kind: type) -> bool:
        return _making.on_gpus or can_compile(kind)

    return can_compile_class
