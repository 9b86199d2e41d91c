"""Two GPUs share the loop of `letter`: return a list of what has to be added up, "out" and numbers of operands."""

from collections.abc import Sequence
from random import Random

from course.kit.learn.agree import plain
from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import also, wrong

hints = (
    "The output is added if it does not have the letter. And the gradient of an operand has the letters of ...?",
    '`inputs, out = equation.split("->")`, and `inputs.split(",")` has the letters of each operand.',
    "`(['out'] if letter not in out else []) + [k for k, term in enumerate(terms) if letter not in term]`",
)


def added(equation: str, letter: str) -> list[str | int]:
    inputs, out = equation.split("->")
    results: dict[str | int, str] = {"out": out}
    results.update(enumerate(inputs.split(",")))
    return [name for name, axes in results.items() if letter not in axes]


def cases(random: Random) -> Sequence[Case]:
    fixed = [
        *[("bgi,gio->bgo", letter) for letter in "ibog"],
        *[("bi,ij,jo->bo", letter) for letter in "jbo"],
        *[("bhqd,bhkd->bhqk", letter) for letter in "hdk"],
        *[("oi,bi->bo", "b"), ("ij,ij->", "i"), ("bij->bj", "i"), ("i,j->ij", "j")],
    ]
    return [Case(case) for case in fixed + [_drawn(random) for _ in range(12)]]


def _drawn(random: Random) -> tuple[str, str]:
    """An equation of two or three operands, and one of its letters."""
    terms = ["".join(random.sample("abcde", random.randint(1, 3))) for _ in range(random.randint(2, 3))]
    letters = sorted(set("".join(terms)))
    out = "".join(random.sample(letters, random.randint(1, len(letters))))
    return f"{','.join(terms)}->{out}", random.choice(letters)


def agree(given: object, expected: list[str | int]) -> bool:
    """The same names in any order, in a list, a tuple or a set."""
    names = plain(sorted(given, key=str)) if isinstance(given, set | frozenset | list | tuple) else given
    return bool(names == sorted(expected, key=str))


def _terms(equation: str) -> dict[str | int, str]:
    inputs, out = equation.split("->")
    return {"out": out, **dict(enumerate(inputs.split(",")))}


@wrong
def what_has_the_letter(equation, letter):
    """these are the results that *have* the letter. They are cut along it, so each GPU has places of its own in them,
    and there is nothing to add.
    """
    return [name for name, axes in _terms(equation).items() if letter in axes]


@wrong
def the_output_alone(equation, letter):
    """the output is right, and no gradient is ever added. Backward is an einsum, too: a letter that an operand does not
    have is summed in its gradient.
    """
    return ["out"] if letter not in _terms(equation)["out"] else []


@wrong
def the_gradients_alone(equation, letter):
    """the gradients are right, and the output is never added. If it does not have the letter, each GPU has only a part
    of its sums.
    """
    return [name for name, axes in _terms(equation).items() if letter not in axes and name != "out"]


@wrong
def the_output_or_gradients(equation, letter):
    """no gradient is added where the output is. Whether an operand's gradient is added depends on its own letters: with
    three operands, or with a letter that only one of them has, both can be needed.
    """
    terms = _terms(equation)
    return ["out"] if letter not in terms["out"] else [k for k, axes in terms.items() if letter not in axes]


@wrong
def as_under_ddp(equation, letter):
    """this is DDP's answer for every letter: the gradient of the last operand, the weight. DDP cuts the batch."""
    return [len(_terms(equation)) - 2]


@also(as_under_ddp)
def _(equation, letter):
    return [1]


@wrong
def two_operands(equation, letter):
    """this is what a function gives that expects two operands. An equation may have one, or three."""
    inputs, out = equation.split("->")
    first, second = inputs.split(",")
    return [name for name, axes in {"out": out, 0: first, 1: second}.items() if letter not in axes]
