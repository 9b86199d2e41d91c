"""The questions to one operator, on the current CUDA device, be it real or virtual. An answer is one line of text."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import SampleInput
from torch.utils._pytree import tree_flatten, tree_unflatten

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
OTHERS = (torch.complex64, torch.complex128, torch.complex32)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)
MOST = 6  # tensors of an operator that are put on the CPU in turn
LONGEST = 260  # letters of an error's text


def name_of(op: Any) -> str:
    """An operator of PyTorch's table, with its variant."""
    return op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")


def operators() -> dict[str, Any]:
    """The operators of the table by name."""
    return {name_of(op): op for op in op_db}


def tensors(value: Any) -> list[torch.Tensor]:
    """The tensors in nested containers."""
    return [leaf for leaf in tree_flatten(value)[0] if isinstance(leaf, torch.Tensor)]


def sample(op: Any, dtype: torch.dtype, requires_grad: bool = False) -> Any:
    """The operator's first sample whose input is not empty, or None."""
    torch.manual_seed(0)
    # `op.sample_inputs` looks through the whole stack for each sample, which takes longer than most operators.
    for found in op.sample_inputs_func(op, "cuda", dtype, requires_grad):
        if not (isinstance(found.input, torch.Tensor) and found.input.numel() == 0):
            return found
    return None


def public(name: str) -> Any:
    """The function that users call by an operator's name, as it is now, or None."""
    found: Any = torch
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


# The table holds what was there before virtual GPUs were enabled, and some of these functions are replaced then.
_PUBLIC = {name_of(op) for op in op_db if op.op is public(op.name)}


def call(op: Any, given: Any) -> Any:
    """The operator's result."""
    function = public(op.name) if name_of(op) in _PUBLIC else op.op
    return function(given.input, *given.args, **given.kwargs)


def described(result: Any) -> str:
    """The dtype, the shape and the strides of each tensor of a result, and where it is if that is not the GPU."""
    parts = []
    for tensor in tensors(result):
        layout = list(tensor.stride()) if tensor.layout is torch.strided else tensor.layout
        parts.append(f"{_short(tensor.dtype)}{list(tensor.shape)}{layout}{'' if tensor.is_cuda else '@cpu'}")
    return " ".join(parts)[:200]


def answer(question: Callable[[], str], lines: int = 2, longest: int = LONGEST) -> str:
    """ "ok" and what the question returns; or "!" and its error, "DEAD" where the context is lost with it.

    `lines` and `longest` say how much of the error's text is kept.
    """
    try:
        return f"ok {question()}"
    except Exception as error:
        text = re.sub(r"\(Triggered internally.*", "", re.sub(r"0x[0-9a-f]+", "0x", str(error)))
        kept = " / ".join(text.strip().splitlines()[:lines])[:longest]
        dead = "CUDA error" in text and "invalid device ordinal" not in text
        return f"{'DEAD' if dead else '!'} {type(error).__name__}: {kept}"


def ask(op: Any) -> Iterator[tuple[str, str]]:
    """The keys and answers of one operator. After an answer that begins with "DEAD" the process is of no more use."""
    name = name_of(op)
    for kind, argument, question in _questions(op):
        yield f"{name}|{kind}|{argument}", answer(question)


def _given(first: Any, args: tuple, kwargs: dict) -> SampleInput:
    return SampleInput(first, args=args, kwargs=kwargs)


Question = tuple[str, str, Callable[[], str]]


def _questions(op: Any) -> Iterator[Question]:
    for dtype in itertools.chain(FLOATS, OTHERS, INTEGERS):
        yield "dtype", _short(dtype), lambda dtype=dtype: _runs(op, dtype)
    dtype = _usual_dtype(op)
    try:
        given = sample(op, dtype)
    except Exception:
        return
    if given is None:
        return
    yield from _on_two_devices(op, given)
    yield "sync", "forward", lambda: _waits(op, given)
    yield "strict", "forward", lambda: _deterministic(lambda: (call(op, given), "ran")[1])
    if dtype.is_floating_point and op.supports_autograd:
        yield "backward", "plain", lambda: _backward(op, dtype)
        yield "strict", "backward", lambda: _deterministic(lambda: _backward(op, dtype))
    for lower in (torch.float16, torch.bfloat16):
        yield "cast", _short(lower), lambda lower=lower: _cast(op, given, lower)


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _usual_dtype(op: Any) -> torch.dtype:
    known = op.dtypesIfCUDA
    return torch.float32 if torch.float32 in known else min(known, key=str, default=torch.float32)


def _runs(op: Any, dtype: torch.dtype) -> str:
    given = sample(op, dtype)
    return "no sample" if given is None else described(call(op, given))


def _on_two_devices(op: Any, given: Any) -> Iterator[Question]:
    leaves, spec = tree_flatten((given.input, given.args, given.kwargs))
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def mixed(place: int) -> str:
        moved = list(leaves)
        moved[place] = moved[place].cpu()
        return described(call(op, _given(*tree_unflatten(moved, spec))))

    if len(places) > 1:
        for position, place in enumerate(places[:MOST]):
            yield "mixed", str(position), lambda place=place: mixed(place)


def _waits(op: Any, given: Any) -> str:
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        call(op, given)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return "no wait"


def _deterministic(question: Callable[[], str]) -> str:
    torch.use_deterministic_algorithms(True)
    try:
        return question()
    finally:
        torch.use_deterministic_algorithms(False)


def _backward(op: Any, dtype: torch.dtype) -> str:
    results = [t for t in tensors(call(op, sample(op, dtype, requires_grad=True))) if t.requires_grad]
    if not results:
        return "no gradient"
    sum((t.abs() if t.is_complex() else t).sum() for t in results).backward()  # type: ignore[union-attr]
    return "ran"


def _cast(op: Any, given: Any, lower: torch.dtype) -> str:
    with torch.autocast("cuda", dtype=lower):
        result = call(op, given)
    return " ".join(_short(t.dtype) for t in tensors(result))
