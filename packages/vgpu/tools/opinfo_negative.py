"""One argument of an operator on another device: virtual GPUs beside PyTorch's FakeTensorMode, which knows most rules.

python packages/vgpu/tools/opinfo_negative.py [--other cpu|cuda:0] [--only PREFIX]     the whole table
"""

from __future__ import annotations

import argparse
import re
import warnings
from collections import Counter
from typing import Any

import torch
from opinfo_check import name_of, op_db
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_flatten, tree_unflatten

import vgpu

HOME = torch.device("cuda", 1)
# Where FakeTensorMode does not do what a GPU does: what that is, and why. This list only ever shrinks.
_PASSES = ("device", "FakeTensorMode of older versions (2.11 to 2.13) lets two devices pass, that of 2.14 does not")
_SINCE_MENDED = ["nn.functional." + name for name in ("conv1d", "conv2d", "conv3d")]
_SINCE_MENDED += [f"nn.functional.conv_transpose{k}d" for k in (1, 2, 3)] + ["index_add", "index_copy"]
FAKE_ERRS = dict.fromkeys(_SINCE_MENDED, _PASSES) | {
    "as_strided_scatter": ("runs", "ends in copy_, which takes tensors of several devices"),
    "select_scatter": ("runs", "ends in copy_, which takes tensors of several devices"),
    "native_dropout_backward": ("device", "multiplies by the mask; FakeTensorMode decomposes it and converts the mask"),
    "__getitem__": ("device", "FakeTensorMode does not look at the device of indices"),
    "index_put": ("device", "FakeTensorMode does not look at the device of indices"),
    "nn.functional.linear_cross_entropy.chunked": ("device", "matrix products, one operator to FakeTensorMode"),
    "nn.functional.linear_cross_entropy.chunked_none": ("device", "matrix products, one operator to FakeTensorMode"),
}
WORDS = ("same device", "device type", "is on c", "should be the same", "indices should be")
WORDS += ("expected a CUDA device", "get_device()")  # assertions of single kernels


def public(name: str) -> Any:
    """The function that users call by an operator's name, as it is now, or None."""
    found: Any = torch
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


PUBLIC = {op.name for op in op_db if op.op is public(op.name)}  # the table holds what stood there before enabling


def outcome(op: Any, given: tuple) -> tuple[str, str]:
    """ "runs", "device" for an error about devices or "other" for another one; and the error's text."""
    first, args, kwargs = given
    try:
        (public(op.name) if op.name in PUBLIC else op)(first, *args, **kwargs)
    except Exception as error:
        text = str(error)
        kind = "device" if any(w in text for w in WORDS) or "DeviceMismatch" in type(error).__name__ else "other"
        return kind, text
    return "runs", ""


def misplaced(op: Any) -> tuple[Any, list, list[int], int] | None:
    """A sample with two tensors at least: its leaves, which of them are tensors, and the one to misplace."""
    for sample in op.sample_inputs_func(op, "cpu", torch.float32, False):
        leaves, spec = tree_flatten((sample.input, sample.args, sample.kwargs))
        tensors = [k for k, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        if any(leaves[k].layout is not torch.strided for k in tensors):
            continue
        movable = [k for k in tensors[1:] if leaves[k].dim() and leaves[k].numel()]
        if len(tensors) > 1 and movable and leaves[tensors[0]].dim():
            return spec, leaves, tensors, movable[0]
    return None


def check(op: Any, other: str = "cpu") -> str | None:
    """Compare both on one sample; return how they differ, or None; "-" where the operator takes one tensor only."""
    if torch.float32 not in op.supported_dtypes("cpu"):
        return "-"
    found = misplaced(op)
    if found is None:
        return "-"
    spec, leaves, tensors, moved = found

    def given(place: Any) -> tuple:
        placed = [place(x, other if k == moved else HOME) if k in tensors else x for k, x in enumerate(leaves)]
        return tree_unflatten(placed, spec)

    ours, text = outcome(op, given(lambda x, device: x.detach().to(device)))
    if re.search(r"cpu:\d", text):
        return f"shows the internal device: {text[:120]}"
    vgpu.disable()
    try:
        with FakeTensorMode(allow_non_fake_inputs=True) as mode:
            fakes = given(lambda x, device: fake_on(mode, x, device))
            theirs, their_text = outcome(op, fakes)
    finally:
        vgpu.enable(2, force=True)
    if ours == theirs or theirs == "other" or ours == FAKE_ERRS.get(name_of(op), ("",))[0]:
        return None
    return f"virtual: {ours} {text[:90]!r}, fake: {theirs} {their_text[:90]!r}"


def fake_on(mode: FakeTensorMode, x: torch.Tensor, device: Any) -> torch.Tensor:
    """A fake tensor on a GPU that does not exist."""
    from torch._subclasses.fake_tensor import FakeTensor

    return FakeTensor(mode, x.detach().to("meta"), torch.device(device))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--other", default="cpu")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    counts: Counter = Counter()
    vgpu.enable(2, force=True)
    for op in op_db:
        if op.name.startswith(options.only):
            difference = check(op, options.other)
            if difference != "-":
                counts[difference is None] += 1
            if difference not in (None, "-"):
                print(f"{name_of(op)}: {difference}", flush=True)
    print(f"torch {torch.__version__}, one tensor on {options.other}: {counts[True]} of {sum(counts.values())} agree")


if __name__ == "__main__":
    main()
