"""What CUDA refuses although the host's kernel would run: for a dtype, for want of a kernel, or as nondeterministic."""

from __future__ import annotations

from typing import Any

import torch
from torch._C import DispatchKey, DispatchKeySet

from vgpu.base import errors
from vgpu.hardware import arguments, deterministic, refused

_CUDA = DispatchKeySet(DispatchKey.CUDA)


class Limits:
    """The limits of one operator on CUDA.

    Args:
        func: the operator.
    """

    def __init__(self, func: torch._ops.OpOverload) -> None:
        schema = func._schema
        self._func = func
        self._full_name = schema.name.partition("::")[2] + (f".{schema.overload_name}" if schema.overload_name else "")
        self._name = _plain(func)
        self._names = [argument.name for argument in schema.arguments]
        self._absent = self._name in refused.ABSENT
        self._dtypes = refused.DTYPES.get(self._name, ())
        self._only_if = refused.ONLY_IF.get(self._name)
        self._arguments = arguments.CHECKS.get(self._name)
        self._checked = self._name in deterministic.CHECKED

    def check(self, args: tuple, kwargs: dict | None) -> None:
        """Raise what a GPU raises for these arguments, if it does."""
        if self._absent:
            self._func.redispatch(_CUDA, *args, **(kwargs or {}))  # there is no such kernel, and PyTorch says so
        if self._name in refused.NOT_SIMULATED:
            raise errors.not_simulated(f"the operator aten::{self._full_name}")
        given = {**dict(zip(self._names, args, strict=False)), **(kwargs or {})}
        if self._arguments is not None:
            self._arguments(given)
        if self._checked and torch.are_deterministic_algorithms_enabled():
            deterministic.check(self._name, given)
        if self._dtypes and (self._only_if is None or self._only_if(given)):
            self._check_dtype(given)

    def _check_dtype(self, given: dict[str, Any]) -> None:
        dtype = next(value.dtype for value in given.values() if isinstance(value, torch.Tensor))
        for refusal in self._dtypes:
            if dtype in refusal.dtypes:
                raise refusal.error(refusal.text.format(errors.LEGACY_NAMES.get(dtype, dtype)))


def of(func: torch._ops.OpOverload) -> Limits | None:
    """The limits of an operator, or None if CUDA runs it wherever the host does."""
    name = _plain(func)
    tables = (refused.DTYPES, refused.ABSENT, refused.NOT_SIMULATED, deterministic.CHECKED, arguments.CHECKS)
    return Limits(func) if any(name in table for table in tables) else None


def _plain(func: torch._ops.OpOverload) -> str:
    """An operator's name without namespace, overload and the underscore of its in-place form."""
    return func._schema.name.partition("::")[2].removesuffix("_")
