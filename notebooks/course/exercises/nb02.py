"""Exercises of notebook 02: what a GPU holds during a step, and the module inside `nn.DataParallel`."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from torch import Tensor, nn, zeros

from course.learn.exercise import Case, Exercise, Mistake


def bytes_held(module: nn.Module, gpus: int) -> list[int]:
    tensors = [*module.parameters(), *module.buffers()]
    return [sum(t.numel() * t.element_size() for t in tensors)] * gpus


def _split_evenly(module: nn.Module, gpus: int) -> list[int]:
    return [held // gpus for held in bytes_held(module, gpus)]


def _only_on_the_first(module: nn.Module, gpus: int) -> list[int]:
    return [bytes_held(module, 1)[0]] + [0] * (gpus - 1)


def _nets(random: Random, count: int) -> list[nn.Module]:
    """Small modules of drawn sizes, every other one with buffers."""
    nets: list[nn.Module] = []
    for k in range(count):
        width = random.randint(2, 64)
        nets.append(nn.Linear(width, 10) if k % 2 else nn.Sequential(nn.Linear(8, width), nn.BatchNorm1d(width)))
    return nets


def _held_cases(random: Random) -> Sequence[Case]:
    return [Case((net, 2 + k % 7)) for k, net in enumerate([nn.Linear(64, 16), *_nets(random, 12)])]


def unwrap(model: nn.Module) -> nn.Module:
    return model.module if isinstance(model, nn.DataParallel) else model


class Cropped(nn.Module):
    """A model of the reader's own, with a child that it happens to call `module`."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.module = nn.Linear(width, 2)


def _unwrap_cases(random: Random) -> Sequence[Case]:
    plain = [nn.Linear(3, 2), Cropped(5), *_nets(random, 4), *(Cropped(random.randint(2, 99)) for _ in range(4))]
    return [Case((model,)) for net in plain for model in (net, nn.DataParallel(net))]


def strip_module(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix("module."): tensor for name, tensor in state.items()}


def _as_the_first_key_says(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    start = int(next(iter(state)).startswith("module"))
    return {".".join(name.split(".")[start:]): tensor for name, tensor in state.items()}


def _state_cases(random: Random) -> Sequence[Case]:
    names = [
        ["module.hidden.weight", "module.hidden.bias"],
        ["hidden.weight", "hidden.bias"],
        ["module.module_list.0.weight", "module.module_list.1.weight"],
        ["module_list.0.weight", "score.bias"],
        ["module.neck.module.weight", "module.neck.module.bias"],
    ]
    names += [[f"{prefix}layer{random.randint(10, 999)}.weight"] for prefix in ("module.", "", "module.neck.module.")]
    return [Case(({name: zeros(k + 1) for k, name in enumerate(group)},)) for group in names]


def _same_names(given: Any, expected: Mapping[str, Tensor]) -> bool:
    """The same tensors, not copies, under the same names in the same order."""
    return list(given) == list(expected) and all(given[name] is tensor for name, tensor in expected.items())


EXERCISES = (
    Exercise(
        key="02.bytes_held",
        task="Bytes of weights and buffers that each of `gpus` GPUs holds while its replica runs, as a list.",
        reference=bytes_held,
        cases=_held_cases,
        hints=(
            "What does `replicate` make: pieces or copies?",
            "A tensor takes `t.numel() * t.element_size()` bytes. Parameters are not all: think of BatchNorm.",
            "Every GPU holds the sum over `[*module.parameters(), *module.buffers()]`.",
        ),
        mistakes=(
            Mistake(
                "split over the GPUs",
                "you split the module over the GPUs. Rows are split, weights are copied: each GPU needs room for all.",
                "the post on a multi-GPU Faster R-CNN says so, about 2017; asked for in pytorch/pytorch issue 15643, "
                "2018",
                answers=(_split_evenly,),
            ),
            Mistake(
                "on the first GPU only",
                "you left the other GPUs empty. Their copies live for one step only, and are easy to miss between "
                "steps; during it they are there.",
                "read off a memory monitor in pytorch/pytorch issue 1499, 2017",
                answers=(_only_on_the_first,),
            ),
        ),
    ),
    Exercise(
        key="02.unwrap",
        task="The reader's own model: what `nn.DataParallel` wraps, or the model itself where nothing wraps it.",
        reference=unwrap,
        cases=_unwrap_cases,
        agree=lambda given, expected: given is expected,
        hints=(
            "`model.module` is right for a wrapped model, and an AttributeError for most others.",
            "Ask for the type of the wrapper, not for the name of its attribute: a model may have a child `module`.",
            "`return model.module if isinstance(model, nn.DataParallel) else model`",
        ),
        mistakes=(
            Mistake(
                "asks for the attribute",
                "you asked whether there is an attribute `module`. A model that calls one of its own children `module` "
                "has one too, and you returned that child.",
                "the `try: model.module` of pytorch/pytorch issue 9176, 2018, and the `hasattr` in "
                "huggingface/transformers pull request 29780, 2024",
                answers=(lambda model: getattr(model, "module", model),),
            ),
        ),
    ),
    Exercise(
        key="02.strip_module",
        task="The state dict with a leading `module.` taken off each name that has one; tensors stay as they are.",
        reference=strip_module,
        cases=_state_cases,
        agree=_same_names,
        hints=(
            "Some files were saved from the wrapped model, some from the bare one. Both must load.",
            "Only at the start of the name, only once, and only with its dot: `module_list.0.weight` has no prefix.",
            "`str.removeprefix` does all three.",
        ),
        mistakes=(
            Mistake(
                "everywhere in the name",
                "you replaced `module.` wherever it stands. A child called `module` loses its name too: "
                "`module.neck.module.weight` is `neck.module.weight`.",
                "the same slip with other prefixes: openvinotoolkit/model_preparation_algorithm issue 90, 2022",
                answers=(lambda state: {name.replace("module.", ""): tensor for name, tensor in state.items()},),
            ),
            Mistake(
                "seven letters off every name",
                "you cut seven letters off every name, the prefix or not: a state dict of a bare model is ruined.",
                "`k[7:]`, asked about in chenxi116/DeepLabv3.pytorch issue 15, 2020, and nnizhang/VST issue 10, 2025",
                answers=(lambda state: {name[7:]: tensor for name, tensor in state.items()},),
            ),
            Mistake(
                "judges all by the first",
                "you looked at the first name only, without its dot: `module_list.0.weight` begins with `module` too.",
                "`copyStateDict`, quoted in backtime92/CRAFT-Reimplementation issue 32, 2019",
                answers=(_as_the_first_key_says,),
            ),
        ),
    ),
)
