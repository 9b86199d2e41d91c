"""What stage `stage` of `stages` does with `batches` micro-batches under 1F1B, as a list of ("F", number) and
("B", number).
"""

from collections.abc import Sequence
from random import Random

from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import also, wrong

hints = (
    "Before its first backward the last stage has done one forward, and the one before it two. And stage 0?",
    "`early = min(stages - stage, batches)` forwards come first. Then backward and forward take turns.",
    'After the early ones: for each `k`, `("B", k)`, and then `("F", early + k)` if there is such a micro-batch.',
)


def one_forward_one_backward(stage: int, stages: int, batches: int) -> list[tuple[str, int]]:
    early = min(stages - stage, batches)
    order = [("F", k) for k in range(early)]
    for k in range(batches):
        order.append(("B", k))
        if early + k < batches:
            order.append(("F", early + k))
    return order


def cases(random: Random) -> Sequence[Case]:
    fixed = [(0, 4, 8), (3, 4, 8), (1, 4, 2), (0, 1, 3), (2, 4, 4)]
    drawn = [(stages, random.randint(1, 12)) for stages in (2, 3, 5, 8) for _ in range(3)]
    return [Case(case) for case in fixed + [(random.randrange(stages), stages, batches) for stages, batches in drawn]]


def agree(given: object, expected: list[tuple[str, int]]) -> bool:
    """Pairs that are lists, and an order that is a tuple or a generator's list, count as well."""
    return isinstance(given, list | tuple) and [tuple(slot) for slot in given] == expected


@wrong
def all_forwards_first(stage, stages, batches):
    """this is GPipe's order: all forwards and then all backwards. The stage keeps activations of all micro-batches."""
    return [("F", k) for k in range(batches)] + [("B", k) for k in range(batches)]


@also(all_forwards_first)
def _(stage, stages, batches):
    return [("F", k) for k in range(batches)] + [("B", k) for k in reversed(range(batches))]


@wrong
def no_early_forwards(stage, stages, batches):
    """this is what the last stage does. An earlier one gets its first gradient later, and would wait for it after one
    forward, while it could already work for the stages behind it.
    """
    return [slot for k in range(batches) for slot in (("F", k), ("B", k))]


@wrong
def as_early_as_the_first(stage, stages, batches):
    """this is what the first stage does, on every stage. The last one has a gradient after its first forward, so it
    waits for nothing, and keeps more micro-batches than it must.
    """
    return one_forward_one_backward(0, stages, batches)


@wrong
def one_forward_too_few(stage, stages, batches):
    """the order is right, but it begins with one forward too few: the stage waits where it could work. The last stage
    begins with one, and stage 0 with as many as there are stages.
    """
    return one_forward_one_backward(min(stage + 1, stages - 1), stages, batches)


@wrong
def one_forward_too_many(stage, stages, batches):
    """the order is right, but it begins with one forward too many, so the stage keeps one micro-batch more than it
    must. The last stage begins with one, and stage 0 with as many as there are stages.
    """
    early = min(stages - stage + 1, batches)
    turns = [
        slot for k in range(batches) for slot in (("B", k), ("F", early + k)) if slot[0] == "B" or slot[1] < batches
    ]
    return [("F", k) for k in range(early)] + turns


@wrong
def the_last_backwards_are_missing(stage, stages, batches):
    """the backwards of the last micro-batches are missing: each forward needs one."""
    order = one_forward_one_backward(stage, stages, batches)
    return order[: 1 + max(k for k, (kind, _) in enumerate(order) if kind == "F")]
