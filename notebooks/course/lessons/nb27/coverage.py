"""Which tensor of a model is in which group of an optimizer: a strip for each pair, a cell for each tensor."""

from collections.abc import Mapping
from itertools import pairwise

from torch import nn
from torch.optim import Optimizer

from course.kit.figures.palette import KIND_COLOURS, blend, ink_on
from course.kit.figures.svg import FAINT, INK, RULE, Canvas, Figure

TOP, ROW, CELL, STRIP, LEFT = 48, 64, 26, 600, 16
GAP = 8  # between the parts of a model
Pair = tuple[nn.Module, Optimizer]


def coverage(pairs: Mapping[str, Pair], title: str) -> Figure:
    """Draw words -> (model, optimizer). A cell has the number and the colour of its group, and is hatched in none.

    The cells are in the order of `model.parameters()`, with a gap between parts, which are named below the strip.
    Raises ValueError where there is no pair, or more groups than colours.
    """
    most = max((len(optimizer.param_groups) for _, optimizer in pairs.values()), default=0)
    if not 1 <= most <= len(KIND_COLOURS):
        raise ValueError(f"`pairs` has up to {most} groups; 1 to {len(KIND_COLOURS)} can be told apart")
    groups = {words: _groups(*pair) for words, pair in pairs.items()}
    canvas = Canvas(STRIP + 2 * LEFT, TOP + ROW * len(pairs), title, _describe(groups), at=(LEFT, 28))
    for row, (words, of_name) in enumerate(groups.items()):
        _draw_strip(canvas, words, of_name, TOP + row * ROW)
    return canvas.figure()


def _groups(model: nn.Module, optimizer: Optimizer) -> dict[str, int | None]:
    """Name of each parameter -> number of its group, or None."""
    found = {id(p): k for k, group in enumerate(optimizer.param_groups) for p in group["params"]}
    return {name: found.get(id(parameter)) for name, parameter in model.named_parameters()}


def _draw_strip(canvas: Canvas, words: str, of_name: Mapping[str, int | None], top: float) -> None:
    canvas.text(LEFT, top + 8, words, size=13)
    parts = [name.split(".")[0] for name in of_name]
    breaks = sum(a != b for a, b in pairwise(parts))
    width = min(68.0, (STRIP - GAP * breaks) / len(parts))
    x, y = float(LEFT), top + 14
    for k, (part, group) in enumerate(zip(parts, of_name.values(), strict=True)):
        begins = k == 0 or part != parts[k - 1]
        x += GAP if begins and k else 0
        if begins:
            canvas.text(x, y + CELL + 13, part, size=11, fill=FAINT)
        if group is None:
            canvas.rect(x + 1, y, width - 2, CELL, fill="none", stroke=RULE)
            canvas.hatch(x + 1, y, width - 2, CELL, stroke=FAINT)
        else:
            colour = blend(KIND_COLOURS[group], 0.75)
            canvas.rect(x + 1, y, width - 2, CELL, fill=colour, stroke=INK, stroke_width=0.5)
            canvas.text(x + width / 2, y + 17, group, size=11, anchor="middle", fill=ink_on(colour))
        x += width


def _describe(groups: Mapping[str, Mapping[str, int | None]]) -> str:
    rows = []
    for words, of_name in groups.items():
        kinds = sorted({group for group in of_name.values() if group is not None})
        counted = [f"{sum(g == k for g in of_name.values())} in group {k}" for k in kinds]
        lost = sum(group is None for group in of_name.values())
        rows.append(f"{words}: of {len(of_name)} tensors {', '.join([*counted, f'{lost} in none'])}")
    return "; ".join(rows) + "."
