"""One operator of PyTorch's own table (OpInfo) on `cuda:1` beside the CPU: values, gradients and devices.

python packages/vgpu/tools/opinfo_check.py [--dtype float32] [--only PREFIX]     the whole table
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from collections import Counter
from typing import Any

import torch
from same_numbers import same_numbers
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_leaves, tree_map

import vgpu

DEVICE = torch.device("cuda", 1)
UNDEFINED = ("empty", "empty_like", "new_empty", "new_empty_strided", "empty_strided", "empty_permuted")
# Where the CPU runs one operator and a GPU a different one. The samples of attention have gradients of 20 in float32;
# compared with float64, either operator misses them by more than 1e-5.
ROUNDED_OTHERWISE = {"nn.functional.scaled_dot_product_attention": 5e-5}


def name_of(op: Any) -> str:
    return op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")


def check(op: Any, dtype: torch.dtype = torch.float32, samples: int = 4) -> str | None:
    """Run forward and backward of some samples on both devices; return what differed, or None."""
    if dtype not in op.supported_dtypes("cpu"):
        return None
    differentiable = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
    torch.manual_seed(0)
    # `op.sample_inputs` looks through the whole stack for each sample, which takes longer than most operators.
    for sample in itertools.islice(op.sample_inputs_func(op, "cpu", dtype, differentiable), samples):
        given = (sample.input, sample.args, sample.kwargs)
        try:
            expected = _run(op, tree_map(_twin, given))
        except Exception:
            continue  # a sample that does not run on the CPU says nothing
        try:
            found = _run(op, tree_map(_to_gpu, given))
        except Exception as error:
            return f"raised {type(error).__name__}: {str(error)[:160]}"
        difference = _compare(op, expected, found)
        if difference:
            return difference
    return None


def _twin(value: Any) -> Any:
    return value.detach().clone().requires_grad_(value.requires_grad) if isinstance(value, torch.Tensor) else value


def _to_gpu(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().to(DEVICE).requires_grad_(value.requires_grad)
    return DEVICE if isinstance(value, torch.device) else "cuda:1" if value == "cpu" else value


@same_numbers()
def _run(op: Any, given: tuple) -> tuple[list, list]:
    """Outputs and gradients."""
    torch.manual_seed(0)
    first, args, kwargs = given
    outputs = tree_leaves(op(first, *args, **kwargs))
    tensors = [t for t in outputs if isinstance(t, torch.Tensor)]
    leaves = [t for t in tree_leaves(given) if isinstance(t, torch.Tensor) and t.requires_grad and t.is_leaf]
    differentiable = [t for t in tensors if t.requires_grad]
    grads: list = []
    if leaves and differentiable:
        loss = sum((t.abs() if t.is_complex() else t).sum() for t in differentiable)
        grads = list(torch.autograd.grad(loss, leaves, allow_unused=True))
    return outputs, grads


def _compare(op: Any, expected: tuple[list, list], found: tuple[list, list]) -> str | None:
    for part, wanted, got in zip(("output", "gradient"), expected, found, strict=True):
        if len(wanted) != len(got):
            return f"{len(got)} {part}s instead of {len(wanted)}"
        for one, other in zip(wanted, got, strict=True):
            if isinstance(one, torch.Tensor):
                if not isinstance(other, torch.Tensor):
                    return f"{part} is {other!r}"
                if other.device != DEVICE:
                    return f"{part} on {other.device}"
                if op.name in UNDEFINED:
                    continue
                host = other.detach().cpu()
                try:
                    atol = ROUNDED_OTHERWISE.get(op.name, 1e-5)
                    torch.testing.assert_close(host, one.detach(), equal_nan=True, rtol=1e-4, atol=atol)
                except AssertionError as error:
                    return f"{part} differs: {str(error)[:120]}"
            elif isinstance(one, (int, float, bool)) and one == one and one != other:
                return f"{part} {other!r} instead of {one!r}"
    return None


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    dtype = getattr(torch, options.dtype)
    counts: Counter = Counter()
    with vgpu.virtual_gpus(2, force=True):
        for op in op_db:
            on_both = dtype in op.supported_dtypes("cpu") and dtype in op.supported_dtypes("cuda")
            if not on_both or not op.name.startswith(options.only):
                continue
            difference = check(op, dtype)
            counts[difference is None] += 1
            if difference:
                print(f"{name_of(op)}: {difference}", flush=True)
    print(f"torch {torch.__version__}, {options.dtype}: {counts[True]} of {sum(counts.values())} operators agree")


if __name__ == "__main__":
    main()
