"""Exercises of notebook 11: row parallel with a bias, what tensor parallel sends, which plan to take."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, distributed

from course.figures.plan_bars import Plan
from course.learn.exercise import TODO, Case, Exercise, Mistake
from course.ranks import RanksFailed, ranks

LIMIT = 3.0  # seconds after which ranks that wait for each other end an answer


@dataclass(frozen=True)
class OnRanks(Case):
    """A call in two processes, each with its GPU. The result is what each rank returned, as numbers."""

    def call(self, function: Callable[..., Any]) -> Any:
        """Raises RanksFailed, which says where the ranks stood if they waited for each other."""
        try:
            results = ranks(2, limit=LIMIT)(_on_rank)(function, self.args)
        except RanksFailed as failed:
            if "raised NotImplementedError" in str(failed):  # a starter that is not filled in
                raise NotImplementedError from None
            raise
        return TODO if any(result is TODO for result in results) else results


def _on_rank(function: Callable[..., Any], args: tuple[Tensor, ...]) -> Any:
    returned = function(*(tensor.cuda() for tensor in args))  # noqa: FL001 the rank's own
    return returned.tolist() if isinstance(returned, Tensor) else returned


def row_parallel(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    rank, size = distributed.get_rank(), distributed.get_world_size()
    y = x.chunk(size, 1)[rank] @ weight.chunk(size, 1)[rank].T
    distributed.all_reduce(y)
    return y + bias


def _bias_on_every_rank(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    rank, size = distributed.get_rank(), distributed.get_world_size()
    y = F.linear(x.chunk(size, 1)[rank], weight.chunk(size, 1)[rank], bias)
    distributed.all_reduce(y)
    return y


def _never_added_up(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    rank, size = distributed.get_rank(), distributed.get_world_size()
    return x.chunk(size, 1)[rank] @ weight.chunk(size, 1)[rank].T + bias


def _what_the_call_returns(x: Tensor, weight: Tensor, bias: Tensor) -> Any:
    rank, size = distributed.get_rank(), distributed.get_world_size()
    y = x.chunk(size, 1)[rank] @ weight.chunk(size, 1)[rank].T
    return distributed.all_reduce(y)


def _linear_cases(random: Random) -> Sequence[Case]:
    cases = []
    for rows, half, outputs in ((3, 2, 2), *((random.randint(1, 4), random.randint(1, 4), 3) for _ in range(2))):
        inputs = 2 * half
        draw = torch.Generator().manual_seed(random.randrange(1000))
        shapes = ((rows, inputs), (outputs, inputs), (outputs,))
        cases.append(OnRanks(tuple(torch.randn(shape, generator=draw) for shape in shapes)))
    return cases


def _close(mine: Any, right: Any) -> bool:
    """Nested lists of numbers, equal within rounding."""
    return mine == right or torch.allclose(torch.tensor(mine), torch.tensor(right), rtol=1e-4, atol=1e-5)


def bytes_sent(layers: int, words: int, width: int, n: int) -> float:
    tensor = 2 * words * width  # bytes of one activation
    all_reduces = 4 * layers  # attention and MLP, forward and backward
    return all_reduces * tensor * 2 * (n - 1) / n


def _forward_only(layers: int, words: int, width: int, n: int) -> float:
    return bytes_sent(layers, words, width, n) / 2


def _to_everybody(layers: int, words: int, width: int, n: int) -> float:
    return 4 * layers * 2 * words * width * (n - 1)


def _size_cases(random: Random) -> Sequence[Case]:
    fixed = [(1, 1, 1, 2), (32, 8192, 4096, 8), (24, 1024, 2048, 1)]
    drawn = [
        (random.randint(1, 96), random.randint(1, 9999), 64 * random.randint(1, 64), random.choice((1, 2, 4, 8)))
        for _ in range(10)
    ]
    return [Case(arguments) for arguments in [*fixed, *drawn]]


def _near(mine: Any, right: float) -> bool:
    return math.isclose(mine, right, rel_tol=1e-9)


Plans = Callable[[float, float, int], Mapping[str, Plan]]


def choose(plans: Plans, parameters: float, words: float, n: int, memory: float) -> str:
    table = plans(parameters, words, n)
    for name in ("one GPU", "DDP", "FSDP", "tensor", "pipeline"):
        if table[name].total <= memory:
            return name
    return "more GPUs"


def _without_activations(plans: Plans, parameters: float, words: float, n: int, memory: float) -> str:
    table = plans(parameters, words, n)
    for name in ("one GPU", "DDP", "FSDP", "tensor", "pipeline"):
        held = table[name].held
        if held["weights"] + held["gradients"] + held["optimizer"] <= memory:
            return name
    return "more GPUs"


class _Table:
    """A table like the notebook's, smaller."""

    def __repr__(self) -> str:
        return "plans"

    def __call__(self, parameters: float, words: float, n: int) -> dict[str, Plan]:
        def plan(share: float, activations: float, sent: float, gathered: float = 0.0) -> Plan:
            sizes = {"weights": 4 * parameters, "gradients": 4 * parameters, "optimizer": 8 * parameters}
            held = {kind: size * share for kind, size in sizes.items()}
            return Plan({**held, "activations": activations, "gathered": gathered}, sent)

        token = 1e6 * words
        return {
            "one GPU": plan(1, 12 * token, 0),
            "DDP": plan(1, 12 * token / n, 8 * parameters),
            "FSDP": plan(1 / n, 12 * token / n, 12 * parameters, 0.5 * parameters),
            "tensor": plan(1 / n, 6 * token / n, 64 * token),
            "pipeline": plan(1 / n, 5 * token / n, token),
        }


def _choice_cases(random: Random) -> Sequence[Case]:
    table = _Table()
    cases = [Case((table, 1e9, 1000, 4, memory)) for memory in (40e9, 24e9, 8e9, 7e9, 5.5e9, 5.3e9, 4e9)]
    for _ in range(20):
        numbers = (10 ** random.uniform(8, 10.5), random.randint(1, 9000), random.choice((2, 4, 8)))
        cases.append(Case((table, *numbers, random.choice((8e9, 24e9, 80e9)))))
    return cases


EXERCISES = (
    Exercise(
        key="11.row_parallel",
        task="On each of two ranks, compute F.linear(x, weight, bias) from this rank's half of the inputs: half of the "
        "columns of `x` and of `weight`. Every rank returns the whole result.",
        reference=row_parallel,
        cases=_linear_cases,
        agree=_close,
        hints=(
            "Half of the inputs gives every output, but each one only in part.",
            "`x.chunk(size, 1)[rank] @ weight.chunk(size, 1)[rank].T`, and then a collective.",
            "`all_reduce` adds up the parts. Is the bias a part?",
        ),
        mistakes=(
            Mistake(
                "the bias on every rank",
                "you gave every rank the bias, and `all_reduce` has added it up. It belongs behind the sum, once.",
                "huggingface/text-generation-inference issue 1036, 2023; PaddlePaddle/Paddle pull request 35186, 2021",
                answers=(_bias_on_every_rank,),
            ),
            Mistake(
                "never added up",
                "you return this rank's part of the sum. The results of the two ranks have to be added up.",
                "sgl-project/sglang pull request 14811, 2025, brings the missing sum back",
                answers=(_never_added_up,),
            ),
            Mistake(
                "what the call returns",
                "you return what `all_reduce` returns, which is nothing: it changes its argument in place.",
                "Wenyueh/MinivLLM issue 13, 2026",
                answers=(_what_the_call_returns,),
            ),
        ),
    ),
    Exercise(
        key="11.bytes_sent",
        task="Bytes that each GPU sends in a training step under tensor parallel: `layers` blocks, `words` words of "
        "`width` numbers of 2 bytes, `n` GPUs, all_reduce in a ring.",
        reference=bytes_sent,
        cases=_size_cases,
        agree=_near,
        hints=(
            "How many all_reduces does one block make in forward, and how many in backward?",
            "Two and two; each is of words * width numbers.",
            "In a ring, an all_reduce lets each GPU send 2 (n - 1) / n times the bytes of the tensor.",
        ),
        mistakes=(
            Mistake(
                "half of it",
                "you have half of it. Either backward is missing, which sends as much as forward, or a round of the "
                "ring: an all_reduce goes round twice.",
                "ROCm/rccl pull request 26, 2018, in which a reviewer counts one of the two rounds",
                answers=(_forward_only,),
            ),
            Mistake(
                "to everybody",
                "you let every GPU send its tensor to all others. A ring sends less: 2 (n - 1) / n of it.",
                "ROCm/rccl pull request 26, 2018, takes such a factor out of a test program",
                answers=(_to_everybody,),
            ),
        ),
    ),
    Exercise(
        key="11.choose",
        task="The first of one GPU, DDP, FSDP, tensor and pipeline of which `plans(parameters, words, n)[name].total` "
        'fits into `memory` bytes; "more GPUs" if none does.',
        reference=choose,
        cases=_choice_cases,
        hints=(
            "`plans(parameters, words, n)` has a Plan for each name; its `total` is what one GPU holds.",
            "Go through the names in the order of your own trouble, and return the first that fits.",
            'After the loop: `return "more GPUs"`.',
        ),
        mistakes=(
            Mistake(
                "without activations",
                "you counted weights, gradients and optimizer, and left out the activations (or what FSDP gathers).",
                "PrimeIntellect-ai/verifiers issue 26, 2025, wonders where the rest of the memory goes",
                answers=(_without_activations,),
            ),
        ),
    ),
)
