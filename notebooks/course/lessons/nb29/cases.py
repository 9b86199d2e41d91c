"""What several exercises of this lesson try answers on."""

from collections.abc import Sequence
from random import Random

Events = Sequence[tuple[str, str]]


def drawn_cases(random: Random) -> Events:
    length = random.randint(1, 9)
    return [(random.choice(["save", "save", "write"]), random.choice("abc")) for _ in range(length)]
