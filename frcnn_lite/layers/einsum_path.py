"""In which order to multiply three or more operands: the cheapest sequence of pairs, and what each pair costs.

The same question as `opt_einsum.contract_path` (D. G. A. Smith, J. Gray, "opt_einsum", JOSS 2018), which torch uses
when it is installed; without it torch multiplies from left to right.
"""

import math
from dataclasses import dataclass
from itertools import combinations

from frcnn_lite.layers.einsum_explain import explain


@dataclass(frozen=True)
class ContractionStep:
    """One product of two operands: the positions that are taken out, the result being put last; and its cost."""

    positions: tuple[int, int]
    equation: str
    multiply_adds: int
    result_shape: tuple[int, ...]


def contraction_path(equation: str, *shapes: tuple[int, ...]) -> list[ContractionStep]:
    """The cheapest pairwise order for `equation`, found by trying all; at most 6 operands, at least 2.

    Raises ValueError for other numbers of operands and for whatever `explain` refuses.
    """
    reading = explain(equation, *shapes)
    if not 2 <= len(shapes) <= 6:
        raise ValueError(f"shapes: expected 2 to 6 operands (all orders are tried), got {len(shapes)}")
    sizes = {index.name: index.size for index in reading.indices}
    return _cheapest(list(reading.terms), reading.output, sizes)


def left_to_right(equation: str, *shapes: tuple[int, ...]) -> list[ContractionStep]:
    """The order torch takes when opt_einsum is absent: the first two, their product with the third, and so on."""
    reading = explain(equation, *shapes)
    sizes = {index.name: index.size for index in reading.indices}
    terms, steps = list(reading.terms), []
    while len(terms) > 1:
        step, rest = _contract(terms, (0, 1), reading.output, sizes)
        steps.append(step)
        terms = [rest[-1], *rest[:-1]]  # the product stands first again
    return steps


def _cheapest(terms: list[str], output: str, sizes: dict[str, int]) -> list[ContractionStep]:
    if len(terms) == 1:
        return []
    plans = []
    for pair in combinations(range(len(terms)), 2):
        step, rest = _contract(terms, pair, output, sizes)
        plans.append([step, *_cheapest(rest, output, sizes)])
    return min(plans, key=lambda plan: sum(step.multiply_adds for step in plan))


def _contract(
    terms: list[str], pair: tuple[int, int], output: str, sizes: dict[str, int]
) -> tuple[ContractionStep, list[str]]:
    """Multiply two terms; a letter survives only while the output or another term still asks for it."""
    left, right = terms[pair[0]], terms[pair[1]]
    others = [term for k, term in enumerate(terms) if k not in pair]
    wanted = set(output).union(*others)
    letters = list(dict.fromkeys(left + right))
    result = output if not others else "".join(letter for letter in letters if letter in wanted)
    cost = math.prod(sizes[letter] for letter in letters)
    shape = tuple(sizes[letter] for letter in result)
    return ContractionStep(pair, f"{left},{right}->{result}", cost, shape), [*others, result]
