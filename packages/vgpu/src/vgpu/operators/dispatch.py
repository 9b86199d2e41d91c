"""What happens when an operator meets virtual tensors: devices are checked, the CPU kernel runs, the result is placed.

Facts of an operator's schema are worked out once (`_Plan`); a call itself is one pass over its arguments.
"""

from __future__ import annotations

import functools
import os
from typing import Any

import torch
from torch._C import DispatchKey, DispatchKeySet
from torch.utils._pytree import tree_leaves

from vgpu.attention import kernels as attention_kernels
from vgpu.attention import scaled_dot_product
from vgpu.base import errors
from vgpu.base.patches import Patches
from vgpu.distributed import beyond_gloo, collectives, leaving
from vgpu.machine import contexts, devices, memory, rng, waiting
from vgpu.operators import asserts, custom, drawing, limits, waits, widened
from vgpu.operators.placement import INTO_FIRST, Placement
from vgpu.tensors.tensor import KINDS, VirtualTensor, is_virtual, view, wrap

# Names of this file are found faster than attributes of torch, and `run` is called for every operator.
_Tensor = torch.Tensor
_strided = torch.strided
_detach = torch.ops.aten.detach.default
_in_inference = torch.is_inference_mode_enabled
included = torch._C._dispatch_tls_local_include_set
excluded = torch._C._dispatch_tls_local_exclude_set

_LAZY_BITS = DispatchKeySet(DispatchKey.Conjugate).add(DispatchKey.Negative).add(DispatchKey.ZeroTensor)
_FACTORIES = DispatchKeySet(DispatchKey.BackendSelect)
_CPU = DispatchKeySet(DispatchKey.CPU)

# Types that an operator may be given and that say nothing about devices.
_SCALARS = frozenset((int, float, bool, type(None), str, torch.dtype, torch.device, torch.memory_format, torch.layout))

# Operators that change the shape or the storage of an argument and are not tagged as such.
RESHAPES = frozenset(
    (
        "resize_",
        "resize_as_",
        "resize_as_sparse_",
        "set_",
        "as_strided_",
        "copy_sparse_to_sparse_",
    )
)


class _Plan:
    """What `run` must know of one operator."""

    def __init__(self, func: torch._ops.OpOverload) -> None:
        schema = func._schema
        name = schema.name.removeprefix("aten::")
        if name.startswith("_nested"):
            raise errors.not_simulated("nested tensors")
        arguments = schema.arguments
        self.names = [a.name for a in arguments]
        self.written = frozenset(a.name for a in arguments if a.alias_info is not None and a.alias_info.is_write)
        self.lists = [i for i, a in enumerate(arguments) if a.name in self.written and "List" in str(a.type)]
        self.by_place = name.startswith("_foreach_")  # its lists may have another device at each place
        self.has_device = "device" in self.names
        self.placement = Placement(func, self.names, self.written)
        self.limits = limits.of(func)
        self.random = rng.draws(func)
        # The operator that chooses among those for attention is met in inference mode alone.
        self.chooses = scaled_dot_product.attention if func is scaled_dot_product.OPERATOR else None
        self.kernel = attention_kernels.KERNELS.get(func, func)  # what runs on the hosts
        self.resizes = torch.Tag.inplace_view in func.tags or name in RESHAPES or any(a.is_out for a in arguments)
        self.dense = "sparse" not in name and not self.has_device  # makes no tensors but dense ones, and on the CPU
        self.composite = func._can_decompose()
        self.foreign = func.namespace not in ("aten", "prims", "prim")  # may have kernels that users wrote in Python
        self.collective = collectives.Collective(func) if collectives.is_collective(func) else None
        self.into_first = name in INTO_FIRST
        self.splits = name == "_pack_padded_sequence"  # its second result, the batch sizes, lies on the host
        aliased = [r.alias_info for r in schema.returns]
        self.shares = any(a is not None for a in aliased)  # the storage of a result is counted already
        self.views = self.shares and not self.written  # runs no kernel
        self.waits = waits.of(func)
        self.nests = not (self.shares or torch.Tag.pointwise in func.tags)  # may call operators on views of its own
        # For results that are an argument itself (in-place, out=): where to find it.
        self.alters = tuple(self._source(a, arguments) for a in aliased) if self.written and self.shares else None

    @staticmethod
    def _source(alias: Any, arguments: Any) -> int | None:
        if alias is None or not alias.is_write:
            return None
        for position, argument in enumerate(arguments):
            if argument.alias_info is not None and argument.alias_info.before_set == alias.before_set:
                return position
        return None


_plans: dict[Any, _Plan] = {}  # empty while operators must say that they wait
_made: dict[Any, _Plan] = {}


def install(patches: Patches) -> None:
    """Give the tensor class its dispatcher; the class stands below this file and cannot import it.

    Nothing of PyTorch is replaced, and nothing is put back: tensors that outlive `disable` still compute.
    """
    VirtualTensor.run_operator = staticmethod(run)
    contexts.begin[:] = [_plans.clear]


def _after_fork() -> None:
    """The tensors of a process that has used a device are of no use in its forked children, as on GPUs."""
    if devices.in_bad_fork():
        VirtualTensor.run_operator = staticmethod(_forked)


def _forked(func: Any, args: tuple, kwargs: dict | None) -> Any:
    raise errors.of_cuda("initialization error", "A forked process cannot use the GPUs of its parent: spawn it.")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def run(func: Any, args: tuple, kwargs: dict | None) -> Any:
    """Run one operator whose arguments hold at least one virtual tensor."""
    if func is _detach:  # one call in four: autograd's, for what it saves, and the replicas'
        return view(args[0]._host.detach(), args[0]._ordinal)
    plan = _plans.get(func)
    if plan is None:
        plan = _plan(func, args, kwargs)
    # Elsewhere autograd has taken operators that are made of others apart already.
    if plan.composite and plan.chooses is None and _in_inference():
        result = func.decompose(*args, **(kwargs or {}))
        if result is not NotImplemented:
            return result
    if plan.chooses is not None:
        return plan.chooses(*args, **(kwargs or {}))
    if plan.foreign:
        keys = custom.kernel(func)
        if keys is not None:
            return func.redispatch(keys, *args, **(kwargs or {}))
    host_args, ordinal, mixed = _unwrap_all(args, -1, False)
    host_kwargs = {}
    if kwargs:
        values, ordinal, mixed = _unwrap_all(kwargs.values(), ordinal, mixed)
        host_kwargs = dict(zip(kwargs, values, strict=True))
    if mixed and plan.by_place and len(args[0]) > 1:
        return _one_by_one(func, plan, args, kwargs or {})
    if mixed and not plan.placement.on_one_device(args, kwargs or {}):
        return func(*host_args, **host_kwargs)
    if plan.limits is not None:
        plan.limits.check(args, kwargs)
    if plan.collective is not None:
        return _communicate(func, plan, host_args, host_kwargs, args, kwargs, ordinal)
    target: int | None = ordinal
    if plan.has_device:
        device = host_kwargs.get("device")
        if device is not None:
            target = devices.ordinal_of(device)
            host_kwargs["device"] = devices.CPU if target is not None else device
        if host_kwargs.pop("pin_memory", None) and target is not None:
            raise RuntimeError(errors.NOT_PINNABLE)
    try:
        if plan.random is not None and plan.random(args, kwargs):
            result = _drawn(func, plan, host_args, host_kwargs, ordinal)
        elif plan.nests:
            result = _run_on_host(plan.kernel, plan.dense, host_args, host_kwargs)
        else:
            result = func(*host_args, **host_kwargs)
    except (RuntimeError, IndexError) as error:
        memory.raise_if_too_large(error, ordinal)
        written = len(plan.alters) if plan.alters and None not in plan.alters else 0
        result = asserts.answer(func, named(plan, host_args, host_kwargs), ordinal, written)
        if result is NotImplemented:
            result = widened.result(func, host_args, host_kwargs, error)
    for position in plan.lists:  # the kernels of single tensors do not run, which would count what they change
        torch.autograd.graph.increment_version(_argument(plan, args, kwargs, position))
    if plan.alters is not None:
        return _altered(plan, args, kwargs or {}, result, ordinal)
    if target is None:
        return result
    if mixed and plan.into_first and type(args[0]) not in KINDS:
        return result
    if plan.splits:
        return wrap(result[0], target), result[1]
    return _wrapped(result, target, view if plan.shares else wrap)


def _plan(func: Any, args: tuple, kwargs: dict | None) -> _Plan:
    """The plan of an operator that is new, or of each while operators must say that they wait for a device."""
    plan = plan_of(func)
    if not contexts.watched:
        _plans[func] = plan
        return plan
    _plans.clear()  # another thread may have begun to watch while this one made a plan
    given = named(plan, args, kwargs)
    must_wait = plan.waits is not None and plan.waits(given)
    for ordinal in sorted({leaf._ordinal for leaf in tree_leaves(list(given.values())) if is_virtual(leaf)}):
        if not plan.views:
            contexts.launch(ordinal)
        if must_wait:
            waiting.wait(ordinal)
    return plan


def plan_of(func: Any) -> _Plan:
    """What is known of an operator."""
    plan = _made.get(func)
    if plan is None:
        plan = _made[func] = _Plan(func)
    return plan


def named(plan: _Plan, args: Any, kwargs: dict | None) -> dict[str, Any]:
    """The arguments of a call by their names."""
    return dict(zip(plan.names, args, strict=False)) | (kwargs or {})


def _communicate(func: Any, plan: _Plan, hosts: list, host_kwargs: dict, args: Any, kwargs: Any, ordinal: int) -> Any:
    """Run a collective over the group that takes CPU tensors."""
    collective: Any = plan.collective
    group, what = collective.name_of_group(hosts), functools.partial(collective.described, hosts)
    with leaving.explained(group, what):
        hosts, found = collective.routed(hosts, ordinal)
        result = beyond_gloo.run(func, collective, hosts, host_kwargs, found)
    if found.nccl and collective.is_waited_for(hosts):
        leaving.expect(collectives.work(result), group, what)
    if not collective.functional:
        collectives.remember(found, result)
        # The tensors that were written to, not their hosts: autograd hangs its warning on what is returned.
        return (args[0], *result[1:]) if isinstance(result, tuple) else result
    if plan.alters is not None:
        return _altered(plan, args, kwargs or {}, result, ordinal)
    return _wrapped(result, ordinal, wrap)


def _drawn(func: Any, plan: _Plan, args: list, kwargs: dict, ordinal: int) -> Any:
    """Run an operator that draws from the generator of its device, or from the one that it was given."""
    kernel = drawing.kernels.get(func)
    if kernel is not None:
        result = _run_on_host(functools.partial(drawing.run, kernel, ordinal), plan.dense, args, kwargs)
        if result is not NotImplemented:
            return result
    with rng.drawing_on(ordinal, kwargs, "generator" in plan.names):
        return _run_on_host(plan.kernel, plan.dense, args, kwargs)


def _run_on_host(func: Any, dense: bool, args: list, kwargs: dict) -> Any:
    """Call the CPU kernel with the conjugate and negative bits honoured.

    Inside `__torch_dispatch__` PyTorch ignores them: a kernel that makes a conjugate view of its own and passes it on,
    as linalg_pinv does, would compute with the values unconjugated. What kernels of dense tensors make for themselves
    is known to lie on the CPU and need not pass through factories.py.
    """
    for x in args:
        dense = dense and not (isinstance(x, _Tensor) and x.layout is not _strided)
    include, exclude = included(), excluded() - _LAZY_BITS
    if dense:
        include, exclude = include | _CPU, exclude | _FACTORIES
    with torch._C._ForceDispatchKeyGuard(include, exclude):
        return func(*args, **kwargs)


def _unwrap_all(items: Any, ordinal: int, mixed: bool) -> tuple[list, int, bool]:
    """The items with virtual tensors replaced by their hosts, the device seen first, and whether there were several."""
    out = []
    for x in items:
        kind = type(x)
        if kind in KINDS:
            if ordinal == -1:
                ordinal = x._ordinal
            elif ordinal != x._ordinal:
                mixed = True
            x = x._host
        elif kind in _SCALARS:
            pass
        elif isinstance(x, (list, tuple)):
            x, ordinal, mixed = _unwrap_all(x, ordinal, mixed)
        elif isinstance(x, _Tensor):
            mixed = True
        out.append(x)
    return out, ordinal, mixed


def _wrapped(result: Any, ordinal: int, put: Any) -> Any:
    kind = type(result)
    if kind is _Tensor:
        return put(result, ordinal)
    if kind is tuple or kind is list:
        return kind(_wrapped(r, ordinal, put) for r in result)
    return result


def _altered(plan: _Plan, args: tuple, kwargs: dict, result: Any, ordinal: int) -> Any:
    """Results of in-place and out= operators: the very argument that was written to."""
    results = result if isinstance(result, tuple) else (result,)
    out = []
    for one, source in zip(results, plan.alters or (), strict=True):
        if source is None:
            out.append(_wrapped(one, ordinal, wrap))
            continue
        argument = _argument(plan, args, kwargs, source)
        if plan.resizes and type(argument) in KINDS:
            _follow(argument)
        out.append(argument)
    return tuple(out) if isinstance(result, tuple) else out[0]


def _argument(plan: _Plan, args: tuple, kwargs: dict | None, position: int) -> Any:
    """An argument that was given by position or by name."""
    return args[position] if position < len(args) else (kwargs or {})[plan.names[position]]


def _follow(outer: VirtualTensor) -> None:
    """Give the outer tensor the shape and storage its host got from resize_, set_, squeeze_ and the like."""
    host = outer._host
    torch._C.TensorBase.data.__set__(outer, wrap(host, outer._ordinal))  # type: ignore[attr-defined]


def _one_by_one(func: Any, plan: _Plan, args: tuple, kwargs: dict) -> Any:
    """An operator on lists whose places lie on several devices: one place after the other, as on real GPUs."""
    found = []
    for place in range(len(args[0])):
        one, named = ([[x[place]] if isinstance(x, (list, tuple)) else x for x in xs] for xs in (args, kwargs.values()))
        found.append(func(*one, **dict(zip(kwargs, named, strict=True))))
        for position in plan.lists:  # `run` has counted those of virtual tensors
            changed = _argument(plan, args, kwargs, position)[place]
            if type(changed) not in KINDS:
                torch.autograd.graph.increment_version(changed)
    return None if found[0] is None else [one for (one,) in found]
