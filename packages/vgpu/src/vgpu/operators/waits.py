"""Which operators wait for the device, and under which arguments: those in which CUDA's kernels read a result back.

The facts are those of the operators' CUDA sources, and what a real GPU answered under `torch.cuda.set_sync_debug_mode`
where it was asked. An operator that is made of others is not here: those of its parts that wait say so themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from vgpu.machine import devices
from vgpu.tensors.tensor import is_virtual

Waits = Callable[[dict[str, Any]], bool]  # given the arguments of a call by their names

_ALWAYS = frozenset(
    (
        # a number is read
        "_local_scalar_dense",
        "allclose",
        "bincount",
        # how large the result is, the device alone knows
        "_to_sparse",
        "_unique",
        "_unique2",
        "masked_select",
        "nonzero",
        # lengths are read, or copied to the device
        "_ctc_loss",
        "_ctc_loss_backward",
        # the solver's report is read
        "_linalg_check_errors",
        "_linalg_eigh",
        "_linalg_eigvals",
        "_linalg_svd",
        "linalg_pinv",
        "cholesky",
        "linalg_eig",
        "linalg_eigvals",
        "linalg_lstsq",
    )
)
_MASKS = (torch.bool, torch.uint8)


def _copies(given: dict[str, Any]) -> bool:
    """A copy between the host and a device, unless the caller says that it need not be waited for."""
    if given.get("non_blocking") or not given["self"].numel():
        return False
    if "src" in given:
        return is_virtual(given["self"]) != is_virtual(given["src"])
    device = given.get("device")
    return device is not None and device.type == "cpu" and devices.ordinal_of(device) is None


def _indexes(given: dict[str, Any]) -> bool:
    """A mask becomes indices, whose number is read; indices on the CPU are copied."""
    return any(i is not None and (i.dtype in _MASKS or not i.is_cuda) for i in given["indices"])


def _puts(given: dict[str, Any]) -> bool:
    """As for `_indexes`, but one number is put under a mask as it is."""
    indices = [i for i in given["indices"] if i is not None]
    fills = given["values"].dim() == 0 and not given.get("accumulate") and len(indices) == 1
    return _indexes(given) and not (fills and indices[0].dtype in _MASKS and indices[0].is_cuda)


def _differ(given: dict[str, Any]) -> bool:
    """What has one shape, and is not one tensor, is compared on the device."""
    one, other = given["self"], given["other"]
    return one is not other and one.shape == other.shape and one.numel() > 0


def _asks_for_unique(given: dict[str, Any]) -> bool:
    """Few elements are compared one by one; of many, each is looked for once."""
    elements, tests = given.get("elements"), given.get("test_elements")
    if given.get("assume_unique") or not (is_virtual(elements) and is_virtual(tests)) or not elements.numel():
        return False
    return tests.numel() >= int(10 * elements.numel() ** 0.145)


_WHEN: dict[str, Waits] = {
    "copy_": _copies,
    "_to_copy": _copies,
    "index": _indexes,
    "index_put": _puts,
    "index_put_": _puts,
    "_index_put_impl_": _puts,
    "equal": _differ,
    "isin": _asks_for_unique,
    # the limits are those of the values, where none are given
    "histc": lambda given: given.get("min", 0) == given.get("max", 0) and given["self"].numel() > 0,
    "unique_consecutive": lambda given: given.get("dim") is None,
    "repeat_interleave": lambda given: given.get("output_size") is None,
    "segment_reduce": lambda given: given.get("lengths") is not None and not given.get("unsafe"),
    # it is asked whether a deviation is negative
    "normal": lambda given: is_virtual(given.get("std")) and given["std"].numel() > 0,
    # numbers that are tensors are read
    "linspace": lambda given: is_virtual(given["start"]) or is_virtual(given["end"]),
    "logspace": lambda given: is_virtual(given["start"]) or is_virtual(given["end"]),
    # the norms say how many terms are needed
    "linalg_matrix_exp": lambda given: given["self"].numel() > 0 and given["self"].shape[-1] > 1,
}
_REPORTS = "check_errors"  # an argument of operators whose solver's report is read if the caller asks for it


def of(func: torch._ops.OpOverload) -> Waits | None:
    """Whether a call of an operator waits, given its arguments; None for the operators that never do."""
    name = func._schema.name.removeprefix("aten::")
    if name in _ALWAYS:
        return lambda given: True
    if any(argument.name == _REPORTS for argument in func._schema.arguments):
        return lambda given: bool(given.get(_REPORTS))
    return _WHEN.get(name)
