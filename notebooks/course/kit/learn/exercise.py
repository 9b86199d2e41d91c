"""An exercise: a reference solution, inputs to try it on, and the wrong answers that real people have given."""

import copy
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

from course.kit.learn.source import read_source

LONG = 400  # characters of a repr that are still shown whole


class _Todo:
    """What a starter returns until it is solved."""

    def __repr__(self) -> str:
        return "TODO"

    def __reduce__(self) -> str:
        return "TODO"  # one and the same in every process


TODO = _Todo()


@dataclass(frozen=True)
class Case:
    """Arguments of one call."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)

    def call(self, function: Callable[..., Any]) -> Any:
        return function(*self.args, **self.kwargs)

    def show(self, name: str) -> str:
        """The call as the reader would write it, tensors by their shapes."""
        words = [show(value) for value in self.args] + [f"{key}={show(value)}" for key, value in self.kwargs.items()]
        return f"{name}({', '.join(words)})"


@dataclass(frozen=True)
class Fresh(Case):
    """Each call gets copies of the arguments: what one answer has changed in them is not handed to the next."""

    def call(self, function: Callable[..., Any]) -> Any:
        args, kwargs = copy.deepcopy((self.args, self.kwargs))
        return function(*args, **kwargs)


@dataclass(frozen=True)
class Ended:
    """How a test that a reader wrote ended on one program. `why`, the first line of the error, is not compared."""

    passed: bool
    why: str = field(default="", compare=False)

    def __repr__(self) -> str:
        return "a test that passes" if self.passed else f"a test that fails{': ' + self.why if self.why else ''}"


@dataclass(frozen=True)
class Trial(Case):
    """A right or a wrong program for a test that the reader writes: the result of the call is how the test ended."""

    def call(self, function: Callable[..., Any]) -> Any:
        try:
            returned = super().call(function)
        except NotImplementedError:  # a starter that is not filled in
            raise
        except Exception as error:
            return Ended(False, f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}")
        return returned if returned is TODO else Ended(True)


@dataclass(frozen=True)
class Program:
    """A right or a wrong program for such a test, which calls it like `run` itself; `words` say which one it is."""

    words: str
    run: Callable[..., Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.run(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<{self.words}>"


@dataclass(frozen=True)
class Mistake:
    """A wrong answer known by its behaviour.

    message: what such a program does, and what torch does instead. It says "you" only of what every program that is
    recognised must do: the checker sees results, and different programs give the same ones;
    source: the post or issue where someone made it, or "" where nobody has to be quoted for a slip;
    answers: functions that make the mistake, one for each way of writing it that gives different values;
    recognise: (cases, given) -> bool, where agreement with one of `answers` in every case is too narrow.
    """

    name: str
    message: str
    source: str = ""
    answers: tuple[Callable[..., Any], ...] = ()
    recognise: Callable[[Sequence[Case], Sequence[Any]], bool] | None = None


@dataclass(frozen=True)
class Exercise:
    """key: "NN.name"; task: what to write, in a sentence; hints: from a nudge to the line itself.

    cases(random) gives the calls to try, fixed ones first and drawn ones after them, so that a table of answers fails;
    agree(given, expected) compares the results of one call.
    """

    key: str
    task: str
    reference: Callable[..., Any]
    cases: Callable[[Random], Sequence[Case]]
    hints: tuple[str, ...]
    mistakes: tuple[Mistake, ...] = ()
    agree: Callable[[Any, Any], bool] = operator.eq

    @property
    def name(self) -> str:
        """Name of the function the reader writes."""
        return self.key.split(".", 1)[1]

    @property
    def solution(self) -> str:
        """Source of the reference, which is the shipped helper wherever there is one."""
        return read_source(self.reference)


def show(value: Any, note: Callable[[Any], str] | None = None) -> str:
    """A value in a sentence: tensors by shape and device, arrays by shape, floats to 4 digits, containers by item.

    `note(tensor)` is added to each tensor that is shown by its shape.
    """
    if isinstance(value, np.ndarray):
        return f"<array {value.shape}>"
    if isinstance(value, np.generic):  # a number of NumPy, whose `device` is a word
        return show(value.item(), note)
    if hasattr(value, "shape") and hasattr(value, "device"):
        more = "" if note is None else note(value)
        if value.shape == () and value.device.type == "cpu" and not more:
            return f"tensor({show(value.item())})"
        place = "" if value.device.type == "cpu" else f" on {value.device}"
        return f"<tensor {tuple(value.shape)}{place}{more}>"
    if isinstance(value, float):
        return f"{value:.4g}"
    if type(value) is list:
        return f"[{', '.join(show(item, note) for item in value)}]"
    if type(value) is tuple:
        return f"({', '.join(show(item, note) for item in value)}{',' * (len(value) == 1)})"
    if type(value) is dict:
        return f"{{{', '.join(f'{key!r}: {show(item, note)}' for key, item in value.items())}}}"
    return repr(value)


def show_apart(given: Any, expected: Any) -> tuple[str, str]:
    """Two values that are not the same, each in a sentence, with as much as it takes to tell them apart.

    First as `show` does, then with what is known of the graph, then all numbers or the first that differs, and at
    last the memory that they use.
    """
    for note in (None, _graph):
        mine, right = show(given, note), show(expected, note)
        if mine != right:
            return mine, right
    mine, right = repr(given), repr(expected)
    if mine == right:
        return show(given, _memory), show(expected, _memory)
    if max(len(mine), len(right)) <= LONG:
        return mine, right
    place = _first_apart(given, expected)
    if place is not None:
        return _with_item(given, place), _with_item(expected, place)
    start = next((i for i, pair in enumerate(zip(mine, right, strict=False)) if pair[0] != pair[1]), 0)
    part = slice(max(0, start - 40), start + 40)
    return f"{show(given)} with {mine[part]} ...", f"{show(expected)} with {right[part]} ..."


def _first_apart(given: Any, expected: Any) -> tuple[int, ...] | None:
    """Where two tensors or arrays of one shape first differ to four digits; None for anything else."""
    if not (_is_dense(given) and _is_dense(expected) and given.shape == expected.shape):
        return None
    pairs = zip(given.flatten().tolist(), expected.flatten().tolist(), strict=True)
    first = next((k for k, (mine, right) in enumerate(pairs) if show(mine) != show(right)), None)
    return None if first is None else tuple(int(index) for index in np.unravel_index(first, given.shape))


def _is_dense(value: Any) -> bool:
    return hasattr(value, "shape") and str(getattr(value, "layout", "torch.strided")) == "torch.strided"


def _with_item(value: Any, place: tuple[int, ...]) -> str:
    return f"{show(value)} with {show(value[place].item())} at {list(place)}"


def _graph(tensor: Any) -> str:
    return " that has no grad_fn" if tensor.grad_fn is None else " that has a grad_fn"


def _memory(tensor: Any) -> str:
    return f" in {tensor.untyped_storage().nbytes():,} bytes of memory"
