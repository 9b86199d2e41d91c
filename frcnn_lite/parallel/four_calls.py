"""`nn.parallel.data_parallel` in its four calls, on any devices, `["cpu", "cpu"]` too.

Autograd does the copying: `Tensor.to(device)` takes values there and gradients back. Results and gradients are those of
torch's own functions; two things are better: replicas list their parameters (empty in torch since 1.5, pytorch issue
38493), and an exception keeps the frames of the worker that raised it.
"""

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import torch
from torch import Tensor, nn

Devices = Sequence[torch.device | str]


def data_parallel(
    module: nn.Module,
    inputs: tuple[Any, ...],
    devices: Devices,
    output_device: torch.device | str | None = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """`module(*inputs, **module_kwargs)`, its rows split over `devices`.

    Args:
        module: its weights may be anywhere.
        inputs: arguments by position.
        devices: one for each replica, such as `["cpu", "cpu"]`.
        output_device: where results are joined; the default is the first of `devices`.
        dim: the dimension of rows.
        module_kwargs: arguments by name.

    Returns:
        What the module returns, its tensors joined along `dim`.

    Raises:
        ValueError: `devices` is empty.
        Exception: what a replica raises, with a note that names the replica.
    """
    if not devices:
        raise ValueError("`devices` is empty; name at least one, such as ['cuda:0', 'cuda:1'] or ['cpu', 'cpu']")
    shares = scatter((inputs, module_kwargs or {}), devices, dim)
    used = devices[: len(shares)]
    args, kwargs = zip(*shares, strict=True)
    outputs = parallel_apply(replicate(module, used), args, kwargs, used)
    return gather(outputs, output_device or devices[0], dim)


def scatter(value: Any, devices: Devices, dim: int = 0) -> list[Any]:
    """One share of `value` for each device that gets one, by torch's rule.

    Args:
        value: a tensor is cut into chunks of ceil(rows / len(devices)) rows; a list, tuple, named tuple or dict is cut
            leaf by leaf, and its shortest leaf decides how many shares there are; everything else is handed to all.
        devices: where the shares go.
        dim: the dimension of rows.
    """
    if isinstance(value, Tensor):
        return [chunk.to(device) for chunk, device in zip(value.chunk(len(devices), dim), devices, strict=False)]
    if isinstance(value, dict) and value:
        return [type(value)(items) for items in scatter(list(value.items()), devices, dim)]
    if isinstance(value, list | tuple) and value:
        make = getattr(value, "_make", type(value))  # a named tuple is built by _make
        return [make(parts) for parts in zip(*(scatter(part, devices, dim) for part in value), strict=False)]
    return [value] * len(devices)


def replicate(module: nn.Module, devices: Devices) -> list[nn.Module]:
    """Shallow copies of a module; gradients of their weights flow back to the originals.

    Buffers are copied without a gradient. Containers and other attributes are shared, hooks are not: one that a replica
    registers stays its own (they are shared in torch, pytorch pull request 128272).

    Args:
        module: it stays as it is.
        devices: one for each copy.
    """
    return [_replica(module, torch.device(device), {}) for device in devices]


def _replica(module: nn.Module, device: torch.device, made: dict[Any, Any]) -> nn.Module:
    """`made` holds what this replica has already, so that tied weights and modules used twice stay tied."""
    if module in made:
        return made[module]
    replica = made[module] = module._replicate_for_data_parallel()  # RNNs override it: they keep a list of weights
    replica.__dict__.update({name: hooks.copy() for name, hooks in vars(module).items() if name.endswith("_hooks")})
    for name, weight in module._parameters.items():
        copied = None if weight is None else made.setdefault(weight, weight.to(device))
        setattr(replica, name, copied)
        replica._parameters[name] = copied
    for name, buffer in module._buffers.items():
        replica._buffers[name] = None if buffer is None else made.setdefault(buffer, buffer.detach().to(device))
    for name, child in module._modules.items():
        replica._modules[name] = None if child is None else _replica(child, device, made)
    return replica


def parallel_apply(
    replicas: Sequence[nn.Module],
    args: Sequence[tuple[Any, ...]],
    kwargs: Sequence[dict[str, Any]],
    devices: Devices | None = None,
) -> list[Any]:
    """Call each replica in a thread of its own.

    Grad mode, autocast and current device belong to a thread, so each thread is given the caller's modes and its own
    device, wherever its inputs are.

    Args:
        replicas: modules, one a thread.
        args: the arguments by position of each.
        kwargs: the arguments by name of each.
        devices: the current device of each thread; the default is where its replica's weights are.

    Returns:
        The results, in the order of the replicas.

    Raises:
        ValueError: `devices` is left out and a replica has neither parameters nor buffers.
        Exception: of several that replicas raise, the one of the first replica.
    """
    devices = [_home_of(replica) for replica in replicas] if devices is None else devices
    results: dict[int, Any] = {}
    lock = threading.Lock()
    modes = [_modes(torch.device(device)) for device in devices]  # read here: the workers' own are the defaults

    def work(i: int) -> None:
        try:
            with ExitStack() as stack:
                for enter in modes[i]:
                    stack.enter_context(enter())
                result = replicas[i](*args[i], **kwargs[i])
            with lock:
                results[i] = result
        except Exception as error:
            error.add_note(f"in replica {i} on {devices[i]}")
            with lock:
                results[i] = error

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(replicas))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = [results[i] for i in range(len(replicas))]
    results.clear()  # an error kept here would keep, through its frames, all that its replica had computed
    for result in found:
        if isinstance(result, Exception):
            try:
                raise result
            finally:
                del found, result
    return found


def _home_of(replica: nn.Module) -> torch.device:
    """The device of the first weight or buffer; replicas of torch list their buffers only."""
    for tensor in (*replica.parameters(), *replica.buffers()):
        return tensor.device
    raise ValueError(f"`devices` is needed: {type(replica).__name__} has neither parameters nor buffers that tell one")


def _modes(device: torch.device) -> list[Callable[[], AbstractContextManager[Any]]]:
    """The contexts that a worker must enter to compute on `device` as the calling thread would."""
    grad, kind = torch.is_grad_enabled(), device.type
    autocast, dtype = torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)
    modes: list[Callable[[], AbstractContextManager[Any]]] = [
        lambda: torch.set_grad_enabled(grad),
        lambda: torch.autocast(kind, dtype=dtype, enabled=autocast),
    ]
    return [*modes, lambda: torch.accelerator.device_index(device.index)] if kind != "cpu" else modes


def gather(outputs: Sequence[Any], device: torch.device | str, dim: int = 0) -> Any:
    """The results of all replicas as one; dicts, lists and tuples are gathered leaf by leaf.

    Args:
        outputs: of the replicas, in order. Tensors are joined, 0-d tensors become a vector, and None stays None.
        device: where the tensors are joined.
        dim: the dimension of rows.

    Raises:
        TypeError: a replica returned anything else, such as a Python number.
    """
    first = outputs[0]
    if first is None:
        return None
    if isinstance(first, Tensor):
        return torch.cat([torch.atleast_1d(output).to(device) for output in outputs], dim)
    if isinstance(first, dict):
        return type(first)((key, gather([output[key] for output in outputs], device, dim)) for key in first)
    if isinstance(first, list | tuple):
        make = getattr(first, "_make", type(first))
        return make(gather(parts, device, dim) for parts in zip(*outputs, strict=True))
    raise TypeError(f"replicas must return tensors, None or containers of them, got {type(first).__name__}")
