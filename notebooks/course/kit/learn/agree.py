"""Compare a result with the right one by its values: a tuple serves for a list, a tensor or an array for numbers.

NaN is found equal to NaN, as `equal_nan=True` does in torch: a wrong answer that gives NaN has to be recognised as the
mistake that gives NaN, too. For a number, NaN is never right.
"""

import math
from numbers import Number, Real
from typing import Any

import numpy as np
from torch import Tensor


def plain(value: Any) -> Any:
    """Tensors and arrays as numbers, tuples and lists as lists, also inside one another."""
    if isinstance(value, Tensor | np.ndarray | np.generic):
        return value.tolist()
    return [plain(item) for item in value] if isinstance(value, tuple | list) else value


def same_values(given: Any, expected: Any) -> bool:
    """The same numbers, words and truths in the same places. True is not 1, and 2.0 is not 2."""
    return _same(plain(given), plain(expected))


def near(given: Any, expected: Any, tolerance: float = 1e-6, absolute: float = 1e-9) -> bool:
    """The same places, and every number within `absolute` of the right one, or `tolerance` in proportion to it."""
    mine, right = plain(given), plain(expected)
    if isinstance(right, list):
        paired = isinstance(mine, list) and len(mine) == len(right)
        return paired and all(near(*pair, tolerance, absolute) for pair in zip(mine, right, strict=True))
    if _is_nan(right):
        return type(mine) is type(right) and _is_nan(mine)
    if isinstance(mine, complex) or isinstance(right, complex):
        return type(mine) is type(right) and abs(mine - right) <= tolerance * abs(right)
    return isinstance(mine, Real) and math.isclose(mine, right, rel_tol=tolerance, abs_tol=absolute)


def _same(mine: Any, right: Any) -> bool:
    if isinstance(mine, list) and isinstance(right, list):
        return len(mine) == len(right) and all(map(_same, mine, right))
    return type(mine) is type(right) and (bool(mine == right) or (_is_nan(mine) and _is_nan(right)))


def _is_nan(value: Any) -> bool:
    """The only number that is not equal to itself; a complex one is NaN if a part of it is."""
    return isinstance(value, Number) and bool(value != value)
