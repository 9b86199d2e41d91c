"""What differs between two records of one program."""

from __future__ import annotations

import math
from typing import Any

import torch

from differential.record import Record

EXACT, LOW = (1e-9, 1.0), (2e-2, 1e-3)  # how far apart, of the largest value; and what that is at least taken for
NOT_FINITE = (7e77, 8e88, -8e88)  # what stands for NaN and the infinities, so they can be compared


def differences(expected: Record, found: Record, exact: bool) -> list[str]:
    """One sentence for each difference."""
    said = []
    if expected.raised != found.raised:
        was, now = (r.raised or "nothing" for r in (expected, found))
        said.append(f"raised {now} instead of {was}: {found.message or expected.message}")
    for name in expected.values | found.values:
        if name not in expected.values or name not in found.values:
            missing, there = ("found", "expected") if name in expected.values else ("expected", "found")
            said.append(f"{name}: {there}, not {missing}")
            continue
        text = differs(expected.values[name], found.values[name], exact)
        if text:
            said.append(f"{name}: {text}")
    return said


def differs(expected: Any, found: Any, exact: bool) -> str:
    """How two values differ; empty where they are equal."""
    if not (isinstance(expected, torch.Tensor) and isinstance(found, torch.Tensor)):
        return "" if type(expected) is type(found) and expected == found else f"{found!r} instead of {expected!r}"
    if (expected.shape, expected.dtype) != (found.shape, found.dtype):
        return f"{found.dtype} {tuple(found.shape)} instead of {expected.dtype} {tuple(expected.shape)}"
    if not expected.is_floating_point():
        return "" if expected.equal(found) else "other values"
    tolerance, least = EXACT if exact else LOW
    scale = max(least, expected.double().nan_to_num(*NOT_FINITE).abs().max().item() if expected.numel() else 0.0)
    apart = error(expected, found)
    return "" if apart <= tolerance * scale else f"off by {apart:.2e} of {scale:.2e}"


def error(expected: Any, found: Any) -> float:
    """The largest difference of two values, infinite where they cannot be subtracted."""
    comparable = isinstance(expected, torch.Tensor) and isinstance(found, torch.Tensor)
    if not comparable or expected.shape != found.shape or not expected.is_floating_point():
        return math.inf
    one, other = expected.double().nan_to_num(*NOT_FINITE), found.double().nan_to_num(*NOT_FINITE)
    return (one - other).abs().max().item() if one.numel() else 0.0
