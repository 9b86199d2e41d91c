"""Bytes of weights and buffers that each of `gpus` GPUs holds while its replica runs, as a list."""

from collections.abc import Sequence
from random import Random
from typing import Any

import torch
from torch import nn

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import wrong

hints = (
    "What does `replicate` make: pieces or copies?",
    "A tensor takes `t.numel() * t.element_size()` bytes. Parameters are not all: think of BatchNorm.",
    "Every GPU holds the sum over `[*module.parameters(), *module.buffers()]`.",
)


def bytes_held(module: nn.Module, gpus: int) -> list[int]:
    tensors = [*module.parameters(), *module.buffers()]
    return [sum(t.numel() * t.element_size() for t in tensors)] * gpus


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


def cases(random: Random) -> Sequence[Case]:
    return [Case((net, 2 + k % 7)) for k, net in enumerate([nn.Linear(64, 16), *_nets(random, 12)])]


agree = _same_numbers


@wrong
def split_over_the_GPUs(module: nn.Module, gpus: int) -> list[int]:
    """this is what comes out when the module is split over the GPUs. Rows are split, weights are copied: each GPU needs
    room for all.

    Source: the post on a multi-GPU Faster R-CNN says so, about 2017; asked for in pytorch/pytorch issue 15643, 2018
    """
    return [held // gpus for held in bytes_held(module, gpus)]


@wrong
def on_the_first_GPU_only(module: nn.Module, gpus: int) -> list[int]:
    """this is what a function gives that leaves the other GPUs empty. Their copies live for one step only, and are easy
    to miss between steps; during it they are there.

    Source: read off a memory monitor in pytorch/pytorch issue 1499, 2017
    """
    return [bytes_held(module, 1)[0]] + [0] * (gpus - 1)


@wrong
def without_buffers(module: nn.Module, gpus: int) -> list[int]:
    """this is what the parameters take. The buffers, such as BatchNorm's running statistics, are missing, and replicas
    get copies of both.

    Source: they are missing from the count asked about in sovrasov/flops-counter.pytorch issue 89, 2022
    """
    return [sum(p.numel() * p.element_size() for p in module.parameters())] * gpus


@wrong
def four_bytes_each(module: nn.Module, gpus: int) -> list[int]:
    """this is what comes out with four bytes for each number. That is float32; a number of BatchNorm's counter takes
    eight, and one in half precision two. `t.element_size()` knows, and so does `t.nbytes`.
    """
    return [sum(t.numel() * 4 for t in [*module.parameters(), *module.buffers()])] * gpus


@wrong
def what_a_file_would_hold(module: nn.Module, gpus: int) -> list[int]:
    """this is what the state dict takes, which is what a checkpoint holds. A buffer that was registered with
    `persistent=False` is not in it and is copied to every GPU nevertheless; a layer that is used twice is in it twice
    and is copied once.
    """
    return [sum(t.nbytes for t in module.state_dict().values())] * gpus
