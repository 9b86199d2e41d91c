"""Exercises of notebook 11: row parallel with a bias, what a mesh of two sides sends, which plan to take."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, distributed

from course.kit.learn.exercise import TODO, Case, Exercise, Mistake
from course.kit.ranks import RanksFailed, ranks
from course.lessons.nb11.plan_bars import Plan

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
    x, weight, bias = (tensor.cuda() for tensor in args)  # noqa: FL001 the rank's own
    for matrix in (x, weight):  # what belongs to the other rank must not be looked at
        matrix.chunk(2, 1)[1 - distributed.get_rank()].fill_(math.nan)
    returned = function(x, weight, bias)
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


def _all_columns(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.linear(x, weight, bias)


def _has_nan(cases: Sequence[Case], given: Sequence[Any]) -> bool:
    return "nan" in repr(given)


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


def bytes_sent(parameters: float, layers: int, words: int, width: int, groups: int, n: int) -> float:
    activation = 4 * words / groups * width  # a group has its share of the words
    inside = 4 * layers * activation * 2 * (n - 1) / n
    between = 4 * parameters / n * 2 * (groups - 1) / groups
    return inside + between


def _all_words(parameters: float, layers: int, words: int, width: int, groups: int, n: int) -> float:
    return bytes_sent(parameters, layers, words * groups, width, groups, n)


def _all_parameters(parameters: float, layers: int, words: int, width: int, groups: int, n: int) -> float:
    return bytes_sent(parameters * n, layers, words, width, groups, n)


def _over_all_gpus(parameters: float, layers: int, words: int, width: int, groups: int, n: int) -> float:
    inside = bytes_sent(0, layers, words, width, groups, n)
    return inside + 4 * parameters / n * 2 * (groups * n - 1) / (groups * n)


def _inside_alone(parameters: float, layers: int, words: int, width: int, groups: int, n: int) -> float:
    return bytes_sent(0, layers, words, width, groups, n)


def _forward_only(parameters: float, layers: int, words: int, width: int, groups: int, n: int) -> float:
    inside = bytes_sent(0, layers, words, width, groups, n)
    return bytes_sent(parameters, layers, words, width, groups, n) - inside / 2


def _to_everybody(parameters: float, layers: int, words: int, width: int, groups: int, n: int) -> float:
    return 4 * layers * 4 * words / groups * width * (n - 1) + 4 * parameters / n * (groups - 1)


def _size_cases(random: Random) -> Sequence[Case]:
    fixed = [
        (1e9, 32, 8192, 1600, 2, 4),
        (12.0, 1, 8, 1, 2, 2),
        (1e9, 24, 1024, 2048, 1, 8),
        (1e9, 24, 1024, 2048, 8, 1),
    ]
    drawn = []
    for _ in range(10):
        layers, width, groups = random.randint(1, 96), 64 * random.randint(1, 64), random.choice((2, 4, 8))
        sizes = 12.0 * layers * width**2, layers, groups * random.randint(1, 9999), width
        drawn.append((*sizes, groups, random.choice((2, 4, 8))))
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


def _dp_first(plans: Plans, parameters: float, words: float, n: int, memory: float) -> str:
    table = plans(parameters, words, n)
    return next((name for name, plan in table.items() if plan.total <= memory), "more GPUs")


def _least_sent(plans: Plans, parameters: float, words: float, n: int, memory: float) -> str:
    table = plans(parameters, words, n)
    fits = [name for name in ("one GPU", "DDP", "FSDP", "tensor", "pipeline") if table[name].total <= memory]
    return min(fits, key=lambda name: table[name].sent, default="more GPUs")


def _least_held(plans: Plans, parameters: float, words: float, n: int, memory: float) -> str:
    table = plans(parameters, words, n)
    fits = [name for name in ("one GPU", "DDP", "FSDP", "tensor", "pipeline") if table[name].total <= memory]
    return min(fits, key=lambda name: table[name].total, default="more GPUs")


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
            "DP": plan(1, 12 * token / n, 4 * parameters * (n - 1)),
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
        task="On each of two ranks, compute F.linear(x, weight, bias) from this rank's half of the inputs: the first "
        "half of the columns of `x` and of `weight` on rank 0, the second on rank 1. Every rank returns all of y.",
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
                "all columns",
                "you used columns that belong to the other rank. The checker has put NaN there, because in a layer "
                "that is divided they are not on this GPU. Rank 0 has the first half of the columns.",
                answers=(_all_columns,),
                recognise=_has_nan,
            ),
            Mistake(
                "the bias on every rank",
                "this is what comes out when every rank adds the bias, and `all_reduce` adds it up. It belongs "
                "behind the sum, once.",
                "huggingface/text-generation-inference issue 1036, 2023; PaddlePaddle/Paddle pull request 35186, 2021",
                answers=(_bias_on_every_rank,),
            ),
            Mistake(
                "never added up",
                "this is a rank's part of the sum. The results of the two ranks have to be added up.",
                "sgl-project/sglang pull request 14811, 2025, brings the missing sum back",
                answers=(_never_added_up,),
            ),
            Mistake(
                "what the call returns",
                "this is what `all_reduce` returns, which is nothing: it changes its argument in place.",
                "Wenyueh/MinivLLM issue 13, 2026",
                answers=(_what_the_call_returns,),
            ),
        ),
    ),
    Exercise(
        key="11.bytes_sent",
        task="Bytes that each GPU sends in a training step in float32 on a mesh of `groups` groups (data) of `n` GPUs "
        "(tensor): `parameters` of the model, `layers` blocks, `words` words of `width` numbers in the batch of all "
        "groups, all_reduce in a ring.",
        reference=bytes_sent,
        cases=_size_cases,
        agree=_near,
        hints=(
            "Two kinds of messages: within a group the sums of the activations, and between the groups the gradients, "
            "as in DDP. Which GPUs take part in each, and how large is what one of them sends?",
            "Within a group: 4 all_reduces for each block, over n GPUs, of the activations of the group's own words. "
            "Between the groups: the gradients of the part of the weights that this GPU holds, over `groups` GPUs.",
            "An all_reduce of b bytes over k GPUs lets each send 2 (k - 1) / k * b. Here b is 4 * words / groups * "
            "width with k = n, and 4 * parameters / n with k = groups.",
        ),
        mistakes=(
            Mistake(
                "gradients forgotten",
                "these are the bytes that are sent within a group. The groups see different words, so their "
                "gradients have to be averaged, too, as under DDP.",
                answers=(_inside_alone,),
            ),
            Mistake(
                "all words in each group",
                "these are the bytes when every group has all words. The groups divide the batch, so the "
                "activations of a group are those of words / groups words.",
                "axolotl-ai-cloud/axolotl pull request 3462, 2026, mends how many GPUs divide the batch",
                answers=(_all_words,),
            ),
            Mistake(
                "all parameters",
                "these are the bytes when each GPU sends the gradients of all parameters. It holds one part in n "
                "of them, and sends the gradient of that part.",
                answers=(_all_parameters,),
            ),
            Mistake(
                "gradients over all GPUs",
                "these are the bytes when gradients are averaged over all GPUs of the mesh. GPUs of one group "
                "hold different parts of the weights, which must not be added up; those with the same part, one "
                "in each group, form the ring.",
                "MoE gradients and their groups, asked about in facebookresearch/fairseq issue 4220, 2022",
                answers=(_over_all_gpus,),
            ),
            Mistake(
                "forward alone",
                "these are the bytes with the sums of the activations in forward alone. Backward sends as many, "
                "of the same size.",
                "ROCm/rccl pull request 26, 2018, in which a reviewer counts one of two rounds",
                answers=(_forward_only,),
            ),
            Mistake(
                "to everybody",
                "these are the bytes when every GPU sends its tensor to all others. A ring sends less: 2 (k - 1) "
                "/ k of it.",
                "ROCm/rccl pull request 26, 2018, takes such a factor out of a test program",
                answers=(_to_everybody,),
            ),
        ),
    ),
    Exercise(
        key="11.choose",
        task="The first of one GPU, DDP, FSDP, tensor and pipeline (not DP) of which "
        "`plans(parameters, words, n)[name].total` "
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
                "DP",
                "this is what a function gives that counts `DP`, nn.DataParallel, among the plans. It holds on "
                "its fullest GPU what DDP holds on each, and there all of the model is sent out by `cuda:0` in "
                "every step, from a single process. Where DP fits, DDP does.",
                "pytorch/pytorch issue 65936, 2021, would deprecate it in favour of DDP",
                answers=(_dp_first,),
            ),
            Mistake(
                "what sends least",
                "this is the plan that sends least of those that fit. Bytes are not all alike: those of a "
                "pipeline are few, and its GPUs are idle while they wait. Take the first plan of the list that "
                "fits.",
                answers=(_least_sent,),
            ),
            Mistake(
                "what holds least",
                "this is the plan that holds least of those that fit. Memory that stays free does nothing for "
                "you; take the first plan of the list that fits.",
                answers=(_least_held,),
            ),
            Mistake(
                "without activations",
                "this is what comes out of weights, gradients and optimizer, without the activations (or what "
                "FSDP gathers).",
                "PrimeIntellect-ai/verifiers issue 26, 2025, wonders where the rest of the memory goes",
                answers=(_without_activations,),
            ),
        ),
    ),
)
