"""The first of one GPU, DDP, FSDP, tensor and pipeline (not DP) of which `plans(parameters, words, n)[name].total` fits
into `memory` bytes; "more GPUs" if none does.
"""

from collections.abc import Callable, Mapping, Sequence
from random import Random

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import wrong
from course.lessons.nb11.plan_bars import Plan

hints = (
    "`plans(parameters, words, n)` has a Plan for each name; its `total` is what one GPU holds.",
    "Go through the names in the order of your own trouble, and return the first that fits.",
    'After the loop: `return "more GPUs"`.',
)


Plans = Callable[[float, float, int], Mapping[str, Plan]]


def choose(plans: Plans, parameters: float, words: float, n: int, memory: float) -> str:
    table = plans(parameters, words, n)
    for name in ("one GPU", "DDP", "FSDP", "tensor", "pipeline"):
        if table[name].total <= memory:
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


def cases(random: Random) -> Sequence[Case]:
    table = _Table()
    cases = [Case((table, 1e9, 1000, 4, memory)) for memory in (40e9, 24e9, 8e9, 7e9, 5.5e9, 5.3e9, 4e9)]
    for _ in range(20):
        numbers = (10 ** random.uniform(8, 10.5), random.randint(1, 9000), random.choice((2, 4, 8)))
        cases.append(Case((table, *numbers, random.choice((8e9, 24e9, 80e9)))))
    return cases


@wrong
def data_parallel(plans: Plans, parameters: float, words: float, n: int, memory: float) -> str:
    """this is what a function gives that counts `DP`, nn.DataParallel, among the plans. It holds on its fullest GPU
    what DDP holds on each, and there all of the model is sent out by `cuda:0` in every step, from a single process.
    Where DP fits, DDP does.

    Source: pytorch/pytorch issue 65936, 2021, would deprecate it in favour of DDP
    """
    table = plans(parameters, words, n)
    return next((name for name, plan in table.items() if plan.total <= memory), "more GPUs")


@wrong
def what_sends_least(plans: Plans, parameters: float, words: float, n: int, memory: float) -> str:
    """this is the plan that sends least of those that fit. Bytes are not all alike: those of a pipeline are few, and
    its GPUs are idle while they wait. Take the first plan of the list that fits.
    """
    table = plans(parameters, words, n)
    fits = [name for name in ("one GPU", "DDP", "FSDP", "tensor", "pipeline") if table[name].total <= memory]
    return min(fits, key=lambda name: table[name].sent, default="more GPUs")


@wrong
def what_holds_least(plans: Plans, parameters: float, words: float, n: int, memory: float) -> str:
    """this is the plan that holds least of those that fit. Memory that stays free does nothing for you; take the first
    plan of the list that fits.
    """
    table = plans(parameters, words, n)
    fits = [name for name in ("one GPU", "DDP", "FSDP", "tensor", "pipeline") if table[name].total <= memory]
    return min(fits, key=lambda name: table[name].total, default="more GPUs")


@wrong
def without_activations(plans: Plans, parameters: float, words: float, n: int, memory: float) -> str:
    """this is what comes out of weights, gradients and optimizer, without the activations (or what FSDP gathers).

    Source: PrimeIntellect-ai/verifiers issue 26, 2025, wonders where the rest of the memory goes
    """
    table = plans(parameters, words, n)
    for name in ("one GPU", "DDP", "FSDP", "tensor", "pipeline"):
        held = table[name].held
        if held["weights"] + held["gradients"] + held["optimizer"] <= memory:
            return name
    return "more GPUs"
