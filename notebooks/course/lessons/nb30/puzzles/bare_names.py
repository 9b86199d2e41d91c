"""Take DataParallel's `module.` off, once and at the front, if every name has it; else change nothing."""

from collections.abc import Sequence
from random import Random

from course.kit.learn.agree import same_values
from course.kit.learn.exercise import Case
from course.kit.learn.puzzle import wrong

hints = (
    "Is it a wrapper's prefix if only some names have it?",
    "`str.removeprefix` takes off one word at the front; `lstrip` takes letters, `replace` looks everywhere.",
    '`if all(name.startswith("module.") for name in names):`',
)


def bare_names(names: Sequence[str]) -> list[str]:
    """The names without the `module.` that DataParallel put before every one of them, if it did."""
    if all(name.startswith("module.") for name in names):
        return [name.removeprefix("module.") for name in names]
    return list(names)


def cases(random: Random) -> Sequence[Case]:
    parts = ["module", "submodule", "model", "encoder", "le", "head", "out"]
    fixed = [
        ["module.conv.weight", "module.conv.bias"],
        ["submodule.conv.weight", "head.weight"],
        ["module.model.weight", "module.submodule.weight"],
        ["module.weight", "other.weight"],
    ]
    drawn = []
    for _ in range(20):
        names = [".".join([*random.choices(parts, k=2), "weight"]) for _ in range(random.randint(1, 4))]
        drawn.append([f"module.{name}" for name in names] if random.random() < 0.5 else names)
    return [Case((names,)) for names in (*fixed, *drawn)]


agree = same_values


@wrong
def lstrips(names: Sequence[str]) -> list[str]:
    """`lstrip` takes a set of letters: `model` and `le` begin with some of m, o, d, u, l, e, and lose them.

    Source: karpathy/nanochat pull request 234, 2025: output_projection became utput_projection
    """
    return [name.lstrip("module.") for name in names]


@wrong
def replaces(names: Sequence[str]) -> list[str]:
    """`replace` cuts wherever it finds the word: inside `submodule.`, and a child that is called `module`.

    Source: huggingface/transformers pull request 35698, 2025
    """
    return [name.replace("module.", "") for name in names]


@wrong
def seven_letters(names: Sequence[str]) -> list[str]:
    """this is what a look at the first name gives, and seven letters cut off each one. A later name may not begin with
    `module.`.

    Source: menzelab/implicit-shape-reconstruction issue 2, 2022: if 'module' in the first key, k[7:]
    """
    return [name[7:] for name in names] if names and "module" in names[0] else list(names)
