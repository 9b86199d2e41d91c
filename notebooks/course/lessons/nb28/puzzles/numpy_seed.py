"""A seed for NumPy (0 .. 2**32 - 1) from a worker's torch.initial_seed(); neighbours stay different."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from course.kit.learn.agree import plain, same_values
from course.kit.learn.exercise import TODO, Case
from course.kit.learn.puzzle import wrong

hints = (
    "Workers of one loader have seeds that follow each other. Which end of the number tells them apart?",
    "Keep the low 32 bits.",
    "`return torch_seed % 2**32`",
)


def numpy_seed(torch_seed: int) -> int:
    """A seed that NumPy takes, 0 .. 2**32 - 1, from torch's of 64 bits: neighbours stay different."""
    return torch_seed % 2**32


@dataclass(frozen=True)
class _Workers(Case):
    """The seeds of eight workers, which follow each other, and that of the first one once more."""

    def call(self, function: Callable[..., Any]) -> Any:
        (first,) = self.args
        seeds = [function(first + k) for k in (*range(8), 0)]
        return seeds[-1] if seeds[-1] is TODO else plain(seeds)

    def show(self, name: str) -> str:
        return f"{name} of {self.args[0]} and the seven numbers after it, and of the first again,"


def cases(random: Random) -> Sequence[Case]:
    fixed = [0, 2**32 - 4, 2**32, 1648085986, 2**63 + 5]
    return [_Workers((seed,)) for seed in [*fixed, *(random.randrange(2**64 - 8) for _ in range(12))]]


def _will_do(seeds: Any) -> bool:
    """Whether NumPy takes these seeds, no two workers have the same, and the first has the same one again."""
    whole = all(type(seed) is int and 0 <= seed < 2**32 for seed in seeds)
    return whole and len(set(seeds)) == 8 and seeds[0] == seeds[-1]


def _agree_on_seeds(given: Any, expected: Any) -> bool:
    return same_values(given, expected) or (_will_do(given) and _will_do(expected))


agree = _agree_on_seeds


@wrong
def the_wrong_end(seed):
    """these are the high bits, less one: small seeds become -1, which NumPy refuses, and the others are the same in
    every worker. `-` binds after `//` and `**`.

    Source: LZGMatrix/BOP19_CDPN_2019ICCV issue 8, 2022: `torch_seed // 2**32 - 1`
    """
    return seed // 2**32 - 1
