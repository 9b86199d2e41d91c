"""Exercises of notebook 02: what a GPU holds during a step, gather, and the prefix that a wrapper leaves in a file."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from random import Random
from typing import Any

import torch
from torch import Tensor, nn

from course.kit.learn.exercise import Case, Exercise, Fresh, Mistake


def bytes_held(module: nn.Module, devices: int) -> list[int]:
    tensors = [*module.parameters(), *module.buffers()]
    return [sum(t.numel() * t.element_size() for t in tensors)] * devices


def _without_buffers(module: nn.Module, gpus: int) -> list[int]:
    return [sum(p.numel() * p.element_size() for p in module.parameters())] * gpus


def _four_bytes_each(module: nn.Module, gpus: int) -> list[int]:
    return [sum(t.numel() * 4 for t in [*module.parameters(), *module.buffers()])] * gpus


def _by_state_dict(module: nn.Module, gpus: int) -> list[int]:
    return [sum(t.nbytes for t in module.state_dict().values())] * gpus


def _split_evenly(module: nn.Module, gpus: int) -> list[int]:
    return [held // gpus for held in bytes_held(module, gpus)]


def _only_on_the_first(module: nn.Module, gpus: int) -> list[int]:
    return [bytes_held(module, 1)[0]] + [0] * (gpus - 1)


def _nets(random: Random, count: int) -> list[nn.Module]:
    """Small modules of drawn sizes: float32 alone, with buffers of different types, with one that is not saved, with
    weights that are not trained, and with a layer that is used twice and copied once."""
    nets: list[nn.Module] = []
    for k in range(count):
        width = random.randint(2, 64)
        net = nn.Linear(width, 10) if k % 2 else nn.Sequential(nn.Linear(8, width), nn.BatchNorm1d(width))
        if k % 3 == 2:
            net.register_buffer("mask", torch.ones(width), persistent=False)
        if k % 4 == 3:
            net = nn.Sequential(net.requires_grad_(False), net)
        nets.append(net)
    return nets


def _same_numbers(given: Any, expected: list[int]) -> bool:
    """A list, or something else with the same numbers in it."""
    return [*given] == expected


def _held_cases(random: Random) -> Sequence[Case]:
    return [Case((net, 2 + k % 7)) for k, net in enumerate([nn.Linear(64, 16), *_nets(random, 12)])]


def gather(outputs: Sequence[Any], device: torch.device) -> Any:
    first = outputs[0]
    if isinstance(first, Tensor):
        return torch.cat([torch.atleast_1d(output).to(device) for output in outputs])
    if isinstance(first, dict):
        return {key: gather([output[key] for output in outputs], device) for key in first}
    return tuple(gather(parts, device) for parts in zip(*outputs, strict=True))


def _without_graph(outputs: Sequence[Any], device: torch.device) -> Any:
    with torch.no_grad():
        return gather(outputs, device)


def _on_the_first(outputs: Sequence[Any], device: torch.device) -> Any:
    return gather(outputs, torch.device("cuda", 0))  # noqa: FL004 the mistake itself


def _plain_cat(outputs: Sequence[Any], device: torch.device) -> Any:
    return torch.cat(list(outputs))


def _cat_of_moved(outputs: Sequence[Any], device: torch.device) -> Any:
    return torch.cat([output.to(device) for output in outputs])


def _cat_of_rows(outputs: Sequence[Any], device: torch.device) -> Any:
    return torch.cat([torch.atleast_1d(output.to(device)) for output in outputs])


def _mean_of_losses(outputs: Sequence[Any], device: torch.device, shape: tuple[int, ...]) -> Any:
    first = outputs[0]
    if isinstance(first, Tensor):
        moved = [output.to(device) for output in outputs]
        return torch.stack(moved).mean().view(shape) if first.dim() == 0 else torch.cat(moved)
    if isinstance(first, dict):
        return {key: _mean_of_losses([output[key] for output in outputs], device, shape) for key in first}
    return tuple(_mean_of_losses(parts, device, shape) for parts in zip(*outputs, strict=True))


def _output_cases(random: Random) -> Sequence[Case]:
    """What replicas return: tensors, losses of no dimension, dicts and tuples of them, with a graph."""
    made = torch.Generator().manual_seed(random.randrange(2**31))

    def output(gpu: int, *shape: int) -> Tensor:
        weight = torch.rand(shape, generator=made).requires_grad_()
        return weight.to(torch.device("cuda", gpu)) * 1

    def returned(kind: int) -> list[Any]:
        sizes = [random.randint(2, 9), random.randint(1, 4)]
        if kind == 0:
            return [output(gpu, rows, 3) for gpu, rows in enumerate(sizes)]
        if kind == 1:
            return [output(gpu) for gpu in range(2)]
        if kind == 2:
            return [{"boxes": output(gpu, rows, 4), "loss": output(gpu)} for gpu, rows in enumerate(sizes)]
        return [(output(gpu, rows, 2), {"loss": output(gpu)}) for gpu, rows in enumerate(sizes)]

    return [Case((returned(k % 4), torch.device("cuda", k // 4 % 2))) for k in range(16)]


def _weights_of(step: Any) -> set[int]:
    """The weights that backward reaches from this step of a graph."""
    if step is None:
        return set()
    reached = {id(step.variable)} if hasattr(step, "variable") else set()
    return reached.union(*(_weights_of(before) for before, _ in step.next_functions))


def _same_values(given: Any, expected: Any) -> bool:
    """The same structure; tensors with equal values of the same type on the same device."""
    if isinstance(expected, Tensor):
        kinds = (expected.device, expected.dtype)
        return isinstance(given, Tensor) and (given.device, given.dtype) == kinds and torch.equal(given, expected)
    if isinstance(expected, dict):
        return list(given) == list(expected) and all(_same_values(given[key], expected[key]) for key in expected)
    return len(given) == len(expected) and all(map(_same_values, given, expected))


def _way_back(joined: Any) -> list[set[int]]:
    """For each tensor, the weights that its graph leads to."""
    if isinstance(joined, Tensor):
        return [_weights_of(joined.grad_fn)]
    parts = joined.values() if isinstance(joined, dict) else joined
    return [weights for part in parts for weights in _way_back(part)]


def _same_outputs(given: Any, expected: Any) -> bool:
    return _same_values(given, expected) and _way_back(given) == _way_back(expected)


def _cuts_the_graph(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    return all(_same_values(joined, case.call(gather)) for case, joined in zip(cases, given, strict=True))


def strip_module(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix("module."): tensor for name, tensor in state.items()}


def _by_lstrip(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.lstrip("module."): tensor for name, tensor in state.items()}


def _every_leading_one(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {re.sub(r"^(module\.)+", "", name): tensor for name, tensor in state.items()}


def _as_the_first_key_says(state: Mapping[str, Tensor], prefix: str = "module") -> dict[str, Tensor]:
    start = int(next(iter(state)).startswith(prefix))
    return {".".join(name.split(".")[start:]): tensor for name, tensor in state.items()}


def _state_cases(random: Random) -> Sequence[Case]:
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
    return given.keys() == expected.keys() and all(_same_values(given[name], expected[name]) for name in expected)


EXERCISES = (
    Exercise(
        key="02.bytes_held",
        task="Bytes of weights and buffers that each of `devices` GPUs holds while its replica runs, as a list.",
        reference=bytes_held,
        cases=_held_cases,
        agree=_same_numbers,
        hints=(
            "What does `replicate` make: pieces or copies?",
            "A tensor takes `t.numel() * t.element_size()` bytes. Parameters are not all: think of BatchNorm.",
            "Every GPU holds the sum over `[*module.parameters(), *module.buffers()]`.",
        ),
        mistakes=(
            Mistake(
                "split over the GPUs",
                "this is what comes out when the module is split over the GPUs. Rows are split, weights are copied: "
                "each GPU needs room for all.",
                "the post on a multi-GPU Faster R-CNN says so, about 2017; asked for in pytorch/pytorch issue 15643, "
                "2018",
                answers=(_split_evenly,),
            ),
            Mistake(
                "on the first GPU only",
                "this is what a function gives that leaves the other GPUs empty. Their copies live for one step only, "
                "and are easy to miss between steps; during it they are there.",
                "read off a memory monitor in pytorch/pytorch issue 1499, 2017",
                answers=(_only_on_the_first,),
            ),
            Mistake(
                "without buffers",
                "this is what the parameters take. The buffers, such as BatchNorm's running statistics, are missing, "
                "and replicas get copies of both.",
                "they are missing from the count asked about in sovrasov/flops-counter.pytorch issue 89, 2022",
                answers=(_without_buffers,),
            ),
            Mistake(
                "four bytes each",
                "this is what comes out with four bytes for each number. That is float32; a number of BatchNorm's "
                "counter takes eight, and one in half precision two. `t.element_size()` knows, and so does "
                "`t.nbytes`.",
                answers=(_four_bytes_each,),
            ),
            Mistake(
                "what a file would hold",
                "this is what the state dict takes, which is what a checkpoint holds. A buffer that was registered "
                "with `persistent=False` is not in it and is copied to every GPU nevertheless; a layer that is used "
                "twice is in it twice and is copied once.",
                answers=(_by_state_dict,),
            ),
        ),
    ),
    Exercise(
        key="02.gather",
        task="What the replicas returned, `outputs`, joined along the rows on `device`: tensors, losses of no "
        "dimension, dicts of them and tuples of them.",
        reference=gather,
        cases=_output_cases,
        agree=_same_outputs,
        hints=(
            "Start with tensors: move each to `device`, then `torch.cat`. Both are operations that autograd knows.",
            "A loss has no dimension to join along: `torch.atleast_1d(loss)` makes a row of it.",
            "A dict: for each key, gather what the replicas have under that key. A tuple: the same for each position.",
        ),
        mistakes=(
            Mistake(
                "cuts the graph",
                "the values are right, but they have no graph that leads to the replicas (as after `no_grad`, `detach` "
                "or `.data`): backward would not find its way back, and no weight would learn.",
                "gathered tensors without gradients: KevinMusgrave/pytorch-metric-learning issue 10, 2020",
                answers=(_without_graph,),
                recognise=_cuts_the_graph,
            ),
            Mistake(
                "always on GPU 0",
                "this is what a function gives that gathers on GPU 0, whatever `device` says. That is where all "
                "outputs meet by default, and where memory runs out first.",
                "a first GPU at 10761 MB beside others at 3651 MB: mkocabas/EpipolarPose issue 22, 2019",
                answers=(_on_the_first,),
            ),
            Mistake(
                "where each of them lies",
                "this is what comes of joining the outputs where they are, each on the GPU of its replica. `torch.cat` "
                "wants all of them on one device, so move each to `device` first.",
                answers=(_plain_cat,),
            ),
            Mistake(
                "tensors only",
                "here a dict or a tuple is treated as a tensor. A replica may return either, and they are joined key "
                "by key or position by position.",
                answers=(_cat_of_rows,),
            ),
            Mistake(
                "mean of the losses",
                "this is what a function gives that takes the mean of the losses. To gather is to join and not to "
                "compute: from the row of losses a program can still take the mean that it wants (notebook 03).",
                answers=(partial(_mean_of_losses, shape=()), partial(_mean_of_losses, shape=(1,))),
            ),
            Mistake(
                "no rows to join",
                "a loss has no dimension, so `torch.cat` has nothing to join it along. Make a row of it first.",
                answers=(_cat_of_moved,),
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
                "this is what a function gives that takes `module.` out wherever it is. A child called `module` loses "
                "its name too: `module.neck.module.weight` should become `neck.module.weight`.",
                "the same slip with other prefixes: openvinotoolkit/model_preparation_algorithm issue 90, 2022",
                answers=(lambda state: {name.replace("module.", ""): tensor for name, tensor in state.items()},),
            ),
            Mistake(
                "seven letters off every name",
                "this is what comes out when every name loses seven letters, the prefix or not: a state dict of a "
                "bare model is ruined.",
                "`k[7:]`, asked about in chenxi116/DeepLabv3.pytorch issue 15, 2020, and nnizhang/VST issue 10, 2025",
                answers=(lambda state: {name[7:]: tensor for name, tensor in state.items()},),
            ),
            Mistake(
                "judges all by the first",
                "this is what a function gives that decides by the first name for all of them. A file can hold names "
                "with the prefix and names without; and without the dot `module_list.0.weight` begins with it too.",
                "`copyStateDict`, quoted in backtime92/CRAFT-Reimplementation issue 32, 2019",
                answers=(_as_the_first_key_says, partial(_as_the_first_key_says, prefix="module.")),
            ),
            Mistake(
                "every leading one",
                "this is what a function gives that goes on as long as a name begins with `module.`. A model whose own "
                "child is called `module` then loses that name as well; `removeprefix` takes off one.",
                answers=(_every_leading_one,),
            ),
            Mistake(
                "lstrip",
                'this is what `lstrip("module.")` gives. It takes *letters* off, any of m, o, d, u, l, e and the dot, '
                "for as long as it finds one: `module.encoder.weight` becomes `ncoder.weight`. `removeprefix` takes "
                "off the word.",
                "the confusion for which Python got `removeprefix`: PEP 616, 2020",
                answers=(_by_lstrip,),
            ),
        ),
    ),
)
