"""The state dict with a leading `module.` taken off each name that has one; tensors stay as they are."""

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import torch
from torch import Tensor

from course.kit.learn.exercise import Case, Fresh
from course.kit.learn.puzzle import also, wrong
from course.lessons.nb02.cases import same_values

hints = (
    "Some files were saved from the wrapped model, some from the bare one. Both must load.",
    "Only at the start of the name, only once, and only with its dot: `module_list.0.weight` has no prefix.",
    "`str.removeprefix` does all three.",
)


def strip_module(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix("module."): tensor for name, tensor in state.items()}


def cases(random: Random) -> Sequence[Case]:
    names = [
        ["module.hidden.weight", "module.hidden.bias"],
        ["module.encoder.weight", "module.mean"],
        ["hidden.weight", "hidden.bias"],
        ["module.module_list.0.weight", "module.module_list.1.weight"],
        ["module_list.0.weight", "score.bias"],
        ["module.neck.module.weight", "module.neck.module.bias"],
        ["module.module.weight", "module.module.bias"],
        ["score.bias", "module.hidden.weight"],
        ["module.hidden.weight", "score.bias"],
    ]
    names += [[f"{prefix}layer{random.randint(10, 999)}.weight"] for prefix in ("module.", "", "module.neck.module.")]
    return [Fresh(({name: torch.arange(k + 1) for k, name in enumerate(group)},)) for group in names]


def _same_names(given: Any, expected: Mapping[str, Tensor]) -> bool:
    """Equal tensors under the same names, in any order."""
    return given.keys() == expected.keys() and all(same_values(given[name], expected[name]) for name in expected)


agree = _same_names


@wrong
def everywhere_in_the_name(state):
    """this is what a function gives that takes `module.` out wherever it is. A child called `module` loses its name
    too: `module.neck.module.weight` should become `neck.module.weight`.

    Source: the same slip with other prefixes: openvinotoolkit/model_preparation_algorithm issue 90, 2022
    """
    return {name.replace("module.", ""): tensor for name, tensor in state.items()}


@wrong
def seven_letters_off_every_name(state):
    """this is what comes out when every name loses seven letters, the prefix or not: a state dict of a bare model is
    ruined.

    Source: `k[7:]`, asked about in chenxi116/DeepLabv3.pytorch issue 15, 2020, and nnizhang/VST issue 10, 2025
    """
    return {name[7:]: tensor for name, tensor in state.items()}


@wrong
def judges_all_by_the_first(state: Mapping[str, Tensor], prefix: str = "module") -> dict[str, Tensor]:
    """this is what a function gives that decides by the first name for all of them. A file can hold names with the
    prefix and names without; and without the dot `module_list.0.weight` begins with it too.

    Source: `copyStateDict`, quoted in backtime92/CRAFT-Reimplementation issue 32, 2019
    """
    start = int(next(iter(state)).startswith(prefix))
    return {".".join(name.split(".")[start:]): tensor for name, tensor in state.items()}


@also(judges_all_by_the_first)
def _(*given):
    return judges_all_by_the_first(*given, prefix="module.")


@wrong
def every_leading_one(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """this is what a function gives that goes on as long as a name begins with `module.`. A model whose own child is
    called `module` then loses that name as well; `removeprefix` takes off one.
    """
    return {re.sub(r"^(module\.)+", "", name): tensor for name, tensor in state.items()}


@wrong
def lstrips(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """this is what `lstrip("module.")` gives. It takes *letters* off, any of m, o, d, u, l, e and the dot, for as long
    as it finds one: `module.encoder.weight` becomes `ncoder.weight`. `removeprefix` takes off the word.

    Source: the confusion for which Python got `removeprefix`: PEP 616, 2020
    """
    return {name.lstrip("module."): tensor for name, tensor in state.items()}
