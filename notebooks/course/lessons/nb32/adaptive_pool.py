"""Adaptive pooling as fixed pooling, for runtimes that have only the fixed kind: where the two are equal.

Window i of adaptive pooling from n cells to m covers the cells floor(i n / m) to ceil((i + 1) n / m), the end excluded.
A fixed window must start where the first does, step to where the second starts and reach the last cell, so the only
candidate has stride floor(n / m) and kernel n - (m - 1) stride: the formula that circulates in posts since 2019.
It is equal to the adaptive windows exactly when n divided by m leaves 0 or 1. Write n = s m + r: window i then starts
at s i + floor(i r / m), and the last of these floors is still 0 only if (m - 1) r < m, so r <= 1 or m = 1.
"""

import copy
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

FIXED: dict[type[nn.Module], type[nn.Module]] = {
    nn.AdaptiveAvgPool1d: nn.AvgPool1d,
    nn.AdaptiveAvgPool2d: nn.AvgPool2d,
    nn.AdaptiveAvgPool3d: nn.AvgPool3d,
    nn.AdaptiveMaxPool1d: nn.MaxPool1d,
    nn.AdaptiveMaxPool2d: nn.MaxPool2d,
    nn.AdaptiveMaxPool3d: nn.MaxPool3d,
}


class Window(NamedTuple):
    """`kernel` and `stride` of a fixed pooling along one axis, in cells."""

    kernel: int
    stride: int


class PoolRewrite(NamedTuple):
    """`model`: the rewritten copy; `rewritten` and `kept`: module name to what it became, or why it stayed."""

    model: nn.Module
    rewritten: dict[str, str]
    kept: dict[str, str]


def adaptive_windows(size: int, output: int) -> list[tuple[int, int]]:
    """First cell and end (excluded) of every window of adaptive pooling from `size` cells to `output`."""
    return [(i * size // output, -(-(i + 1) * size // output)) for i in range(output)]


def fixed_window(size: int, output: int) -> Window:
    """The fixed window that pools `size` cells to `output` as adaptive pooling does.

    Raises ValueError where there is none: `size` divided by `output` leaves more than 1, or is less than 1.
    """
    if size < 1 or output < 1:
        raise ValueError(f"`size` and `output` must be at least 1, got {size} and {output}")
    stride, rest = divmod(size, output)
    if stride == 0 or rest > 1:
        lengths = sorted({end - start for start, end in adaptive_windows(size, output)})
        starts = [start for start, _ in adaptive_windows(size, output)]
        steps = sorted({b - a for a, b in itertools.pairwise(starts)})
        raise ValueError(
            f"no fixed pooling equals adaptive pooling of {size} cells to {output}: its windows are {lengths} long "
            f"and {steps} apart"
        )
    return Window(size - (output - 1) * stride, stride)


def rewrite_adaptive_pools(model: nn.Module, *inputs: Any) -> PoolRewrite:
    """A copy of `model` whose adaptive pooling modules are fixed ones, wherever that changes no value.

    The copy is right for inputs of the size of `inputs` alone, which are run through the model once to see the sizes.
    What cannot be rewritten stays adaptive, and `kept` says why. Calls of `F.adaptive_avg_pool2d` and its like inside a
    `forward` are not modules, and stay unseen.
    """
    shell = nn.Sequential(copy.deepcopy(model))
    sizes = _sizes_seen(shell, inputs)
    rewritten, kept = {}, {}
    for name, module in list(shell.named_modules(remove_duplicate=False)):
        if type(module) not in FIXED:
            continue
        shown = name.removeprefix("0").removeprefix(".") or "(the model itself)"
        try:
            fixed = _fixed(module, sizes.get(module, set()))
        except ValueError as reason:
            kept[shown] = str(reason)
        else:
            shell.set_submodule(name, fixed)
            rewritten[shown] = str(fixed)
    return PoolRewrite(shell[0], rewritten, kept)


def _sizes_seen(shell: nn.Sequential, inputs: Sequence[Any]) -> dict[nn.Module, set[tuple[int, ...]]]:
    """The spatial sizes that reach each adaptive pooling module in one run."""
    seen: dict[nn.Module, set[tuple[int, ...]]] = {}

    def record(module: nn.Module, args: tuple[Tensor, ...]) -> None:
        seen.setdefault(module, set()).add(tuple(args[0].shape[-_dimensions(module) :]))

    pools = [module for module in shell.modules() if type(module) in FIXED]
    hooks = [pool.register_forward_pre_hook(record) for pool in pools]
    training = {module: module.training for module in shell.modules()}
    try:
        with torch.no_grad():
            shell.eval()[0](*inputs)  # a copy in eval mode: no statistic moves
    finally:
        for hook in hooks:
            hook.remove()
        for module, was in training.items():
            module.training = was
    return seen


def _fixed(pool: nn.Module, sizes: set[tuple[int, ...]]) -> nn.Module:
    """The fixed pooling equal to `pool` on inputs of one size, or ValueError with the reason that there is none."""
    if len(sizes) != 1:
        raise ValueError(f"it was reached by inputs of sizes {sorted(sizes)}" if sizes else "no input reached it")
    (size,) = sizes
    wanted: Any = pool.output_size
    outputs = wanted if isinstance(wanted, tuple | list) else (wanted,) * len(size)
    windows = [fixed_window(n, n if m is None else m) for n, m in zip(size, outputs, strict=True)]
    options = {"return_indices": pool.return_indices} if hasattr(pool, "return_indices") else {}
    kernel, stride = (tuple(axis) for axis in zip(*windows, strict=True))
    fixed = FIXED[type(pool)](kernel, stride, **options)
    return fixed.train(pool.training)


def _dimensions(pool: nn.Module) -> int:
    return int(type(pool).__name__[-2])
