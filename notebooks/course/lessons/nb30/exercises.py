"""Exercises of notebook 30: take a wrapper's prefix off, turn the right weights, and account for every name."""

from collections.abc import Sequence
from random import Random

import torch
from torch import Tensor

from course.kit.learn.agree import same_values
from course.kit.learn.exercise import Case, Exercise, Mistake
from course.kit.learn.guarded import Guarded


def bare_names(names: Sequence[str]) -> list[str]:
    """The names without the `module.` that DataParallel put before every one of them, if it did."""
    if all(name.startswith("module.") for name in names):
        return [name.removeprefix("module.") for name in names]
    return list(names)


def from_paddle(layer: str, weight: Tensor) -> Tensor:
    """PyTorch's weight from Paddle's, for a layer "Linear", "Conv2d" or "Embedding"."""
    is_turned = layer == "Linear"
    return weight.T if is_turned else weight


def left_over(model: Sequence[str], file: Sequence[str]) -> tuple[list[str], list[str]]:
    """Names the model lacks in the file, and names of the file the model does not know, each in its order."""
    return [name for name in model if name not in file], [name for name in file if name not in model]


def _replaced(names: Sequence[str]) -> list[str]:
    return [name.replace("module.", "") for name in names]


def _stripped(names: Sequence[str]) -> list[str]:
    return [name.lstrip("module.") for name in names]


def _cut(names: Sequence[str]) -> list[str]:
    return [name[7:] for name in names] if names and "module" in names[0] else list(names)


def _name_cases(random: Random) -> Sequence[Case]:
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


def _weight_cases(random: Random) -> Sequence[Case]:
    generator = torch.Generator().manual_seed(random.randrange(2**32))
    cases: list[Case] = []
    for layer in ("Linear", "Conv2d", "Embedding") * 4:
        rows, columns = random.randint(2, 6), random.randint(2, 6)
        shape = (rows, columns, 3, 3) if layer == "Conv2d" else (rows, columns)
        cases.append(Guarded((layer, torch.rand(shape, generator=generator))))
    square = torch.rand(4, 4, generator=generator)
    return [Guarded(("Linear", square)), Guarded(("Embedding", square)), *cases]


def _left_over_cases(random: Random) -> Sequence[Case]:
    known = ["conv.weight", "conv.bias", "bn.running_mean", "fc.weight", "fc.bias", "aux.weight"]
    fixed = [(known[:3], known[:3]), (known[:4], known[1:5]), (known, [])]
    drawn = [
        (random.sample(known, random.randint(1, 6)), random.sample(known, random.randint(1, 6))) for _ in range(15)
    ]
    return [Case(pair) for pair in (*fixed, *drawn)]


def _equal(given: object, expected: Tensor) -> bool:
    return isinstance(given, Tensor) and torch.equal(given, expected)


EXERCISES = (
    Exercise(
        key="30.bare_names",
        task="Take DataParallel's `module.` off, once and at the front, if every name has it; else change nothing.",
        reference=bare_names,
        cases=_name_cases,
        agree=same_values,
        hints=(
            "Is it a wrapper's prefix if only some names have it?",
            "`str.removeprefix` takes off one word at the front; `lstrip` takes letters, `replace` looks everywhere.",
            '`if all(name.startswith("module.") for name in names):`',
        ),
        mistakes=(
            Mistake(
                "lstrip",
                "`lstrip` takes a set of letters: `model` and `le` begin with some of m, o, d, u, l, e, and lose them.",
                "karpathy/nanochat pull request 234, 2025: output_projection became utput_projection",
                answers=(_stripped,),
            ),
            Mistake(
                "replace",
                "`replace` cuts wherever it finds the word: inside `submodule.`, and a child that is called `module`.",
                "huggingface/transformers pull request 35698, 2025",
                answers=(_replaced,),
            ),
            Mistake(
                "seven letters",
                "this is what a look at the first name gives, and seven letters cut off each one. A later name may "
                "not begin with `module.`.",
                "menzelab/implicit-shape-reconstruction issue 2, 2022: if 'module' in the first key, k[7:]",
                answers=(_cut,),
            ),
        ),
    ),
    Exercise(
        key="30.from_paddle",
        task='Paddle\'s weight of a "Linear", "Conv2d" or "Embedding" as PyTorch wants it.',
        reference=from_paddle,
        cases=_weight_cases,
        agree=_equal,
        hints=(
            "Paddle computes x @ W + b. And PyTorch?",
            "One of the three layers is turned; shapes do not tell, the kind of layer does.",
            '`return weight.T if layer == "Linear" else weight`',
        ),
        mistakes=(
            Mistake(
                "copy as it is",
                "Linear is not turned here. A square one then loads without a word and computes something else.",
                "PaddlePaddle/PaddleMIX issue 239, 2023: is nn.Linear not to be transposed?",
                answers=(lambda layer, weight: weight,),
            ),
            Mistake(
                "turn whatever has two dimensions",
                "this is what turning every weight of two dimensions gives. An embedding has two, and is the same in "
                "both.",
                "PaddlePaddle/PaddleNLP pull request 7341, 2023, needed a list of exceptions for this rule",
                answers=(lambda layer, weight: weight.T if weight.dim() == 2 else weight,),
            ),
        ),
    ),
    Exercise(
        key="30.left_over",
        task="From the names of model and file: (missing in the file, unknown to the model), two lists.",
        reference=left_over,
        cases=_left_over_cases,
        agree=same_values,
        hints=(
            "Two questions, one for each side.",
            "Keep the order, so that a reader finds the names where they stand.",
            "`[name for name in model if name not in file], [name for name in file if name not in model]`",
        ),
        mistakes=(
            Mistake(
                "model_dict.update",
                "this is the report when what is missing is filled up with the model's own names, so nothing is ever "
                "missing: untrained weights stay, and nobody hears of it.",
                "post 004, an engineer's notes, 2021: model_dict.update(pretrained_dict)",
                answers=(lambda model, file: ([], left_over(model, file)[1]),),
            ),
            Mistake(
                "strict=False",
                "neither side is reported, which is what a `strict=False` does whose result nobody reads.",
                "mseitzer/pytorch-fid issue 34, 2020: strict=False resolves the issue",
                answers=(lambda model, file: ([], []),),
            ),
        ),
    ),
)
