"""Parameter groups by name: each pattern gets its own learning rate, and every parameter belongs to exactly one.

    groups = param_groups(model, {"backbone": 0.1, "head": 1.0}, lr=0.01)
    optimizer = torch.optim.SGD(groups, momentum=0.9)

A name that is misspelt in a list of parameters trains nothing, and no error says so; here it is an error.
Groups, their options and what each optimizer reads of them: torch.optim, "Per-parameter options" (docs.pytorch.org).
"""

import math
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from torch import nn

REST = "rest"  # name of the group of the parameters that no pattern names


def param_groups(
    model: nn.Module, multipliers: Mapping[str, float], *, lr: float, rest: float | None = None
) -> list[dict[str, Any]]:
    """Groups for any `torch.optim` optimizer, one a pattern: "params", "lr" and "name".

    Args:
        model: whose parameters are grouped. A shared parameter is in one group, under all of its names.
        multipliers: pattern -> factor on `lr`. A pattern is the dotted name of a parameter or of a module around it,
            with the wildcards of `fnmatch`: `backbone` takes `backbone.conv1.weight`, not `backbone2.conv1.weight`;
            `*.bias` takes every bias. A factor of 0 keeps the group at rest.
        lr: the learning rate that is multiplied.
        rest: factor of all parameters that no pattern names; without it such a parameter is an error.

    Raises:
        ValueError: a parameter is matched by no pattern or by two, or a pattern by no parameter; all are named.
        TypeError: `model` is not a module.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"`model` must be a torch.nn.Module, got {type(model).__name__}")
    _check_numbers(multipliers, lr, rest)
    names = _names(model)
    matches = {own: [pattern for pattern in multipliers if _any_match(own, pattern)] for own in names}
    _check_partition(matches, multipliers, allow_rest=rest is not None)
    factors = dict(multipliers) if rest is None else {**multipliers, REST: rest}
    grouped: dict[str, list[nn.Parameter]] = {name: [] for name in factors}
    for own, parameter in names.items():
        grouped[matches[own][0] if matches[own] else REST].append(parameter)
    return [
        {"params": grouped[name], "lr": lr * factor, "name": name} for name, factor in factors.items() if grouped[name]
    ]


def _names(model: nn.Module) -> dict[tuple[str, ...], nn.Parameter]:
    """Every parameter once, under all the names it is reached by."""
    names: dict[nn.Parameter, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(parameter, []).append(name)
    return {tuple(own): parameter for parameter, own in names.items()}


def _any_match(names: tuple[str, ...], pattern: str) -> bool:
    return any(fnmatchcase(name, pattern) or fnmatchcase(name, f"{pattern}.*") for name in names)


def _check_numbers(multipliers: Mapping[str, float], lr: float, rest: float | None) -> None:
    if not multipliers:
        raise ValueError("`multipliers` is empty: name at least one group, such as {'backbone': 0.1, 'head': 1.0}")
    if REST in multipliers:
        raise ValueError(f"{REST!r} is the name of the group of all other parameters: give its factor as rest=...")
    given = {"lr": lr, **{f"multipliers[{pattern!r}]": factor for pattern, factor in multipliers.items()}}
    if rest is not None:
        given["rest"] = rest
    for name, value in given.items():
        if not (math.isfinite(value) and value >= 0):
            raise ValueError(f"`{name}` must be a finite number of at least 0, got {value!r}")


def _check_partition(
    matches: Mapping[tuple[str, ...], list[str]], multipliers: Mapping[str, float], allow_rest: bool
) -> None:
    """Raise ValueError with everything that is wrong at once, so that one run is enough to repair it."""
    used = {pattern for patterns in matches.values() for pattern in patterns}
    faults = [f"pattern {pattern!r} matches no parameter" for pattern in multipliers if pattern not in used]
    faults += [f"{' = '.join(own)} is matched by {patterns}" for own, patterns in matches.items() if len(patterns) > 1]
    if not allow_rest:
        faults += [f"{' = '.join(own)} is matched by no pattern" for own, patterns in matches.items() if not patterns]
    if faults:
        raise ValueError("every parameter must be in exactly one group:\n  " + "\n  ".join(faults))
