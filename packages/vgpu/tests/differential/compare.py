"""What differs between two records of one program."""

from __future__ import annotations

from typing import Any

import torch

from differential.record import Record

EXACT, LOW = (1e-9, 1.0), (2e-2, 1e-3)  # how far apart, of the largest value; and what that is at least taken for


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
        text = _differs(expected.values[name], found.values[name], *(EXACT if exact else LOW))
        if text:
            said.append(f"{name}: {text}")
    return said


def _differs(expected: Any, found: Any, tolerance: float, least: float) -> str:
    """Empty where the two are equal."""
    if not (isinstance(expected, torch.Tensor) and isinstance(found, torch.Tensor)):
        return "" if type(expected) is type(found) and expected == found else f"{found!r} instead of {expected!r}"
    if (expected.shape, expected.dtype) != (found.shape, found.dtype):
        return f"{found.dtype} {tuple(found.shape)} instead of {expected.dtype} {tuple(expected.shape)}"
    if not expected.is_floating_point():
        return "" if expected.equal(found) else "other values"
    one, other = expected.double().nan_to_num(7e77, 8e88, -8e88), found.double().nan_to_num(7e77, 8e88, -8e88)
    scale = max(least, one.abs().max().item() if one.numel() else 0.0)
    error = (one - other).abs().max().item() if one.numel() else 0.0
    return "" if error <= tolerance * scale else f"off by {error:.2e} of {scale:.2e}"
