"""Batches of digits below one another: what went in, what came back, and from which GPU."""

from collections.abc import Mapping, Sequence
from itertools import accumulate

import numpy as np
import torch
from torch import Tensor

from course.kit.figures.digits import draw_digit
from course.kit.figures.palette import gpu_colour
from course.kit.figures.svg import FAINT, RULE, Canvas, Figure

WIDTH_OF_ROWS, TILE, SPACE = 720, 44, 6  # a tile is 44 pixels at most
LETTER = 7.4  # width of one in a label, on average and a little more
TOP, LANE, FOOT = 48, 16, 30


def digit_rows(batches: Mapping[str, Tensor], title: str, gpus: Mapping[str, Sequence[int]] | None = None) -> Figure:
    """Draw each batch as a row of pictures, the k-th of one above the k-th of the next.

    batches: label -> (N, 1, 8, 8) or (N, 8, 8) of ink 0..16, on any device;
    gpus: label -> how many pictures came from cuda:0, cuda:1, ...; they get a border of the colour of that GPU.

    Raises ValueError for no batch, and where `gpus` does not count the pictures of its batch.
    """
    faces = {label: _faces(batch) for label, batch in batches.items()}
    if not any(len(rows) for rows in faces.values()):
        raise ValueError("`batches` is empty: name at least one batch that has rows")
    owners = {label: _owners(label, len(faces[label]), counts) for label, counts in (gpus or {}).items()}
    left = 32 + max(len(label) for label in faces) * LETTER
    step = min(TILE + SPACE, WIDTH_OF_ROWS / max(map(len, faces.values())))
    tile, most = step - SPACE, max(map(len, faces.values()))
    height = TOP + len(faces) * (tile + LANE) + FOOT
    canvas = Canvas(
        left + max(most * step, len(title) * 9 - left) + 16, height, title, _describe(faces, owners), (16, 26)
    )
    for lane, (label, rows) in enumerate(faces.items()):
        y = TOP + lane * (tile + LANE)
        canvas.text(16, y + tile / 2 + 5, label)
        for row, face in enumerate(rows):
            edge = gpu_colour(owners[label][row]) if label in owners else RULE
            draw_digit(canvas, face, left + row * step, y, tile, edge=edge)
    for row in range(most):
        canvas.text(left + row * step + tile / 2, height - 12, row, size=12, anchor="middle", fill=FAINT)
    canvas.text(16, height - 12, "row", size=12, fill=FAINT)
    return canvas.figure()


def _faces(batch: Tensor) -> np.ndarray:
    return torch.as_tensor(batch).detach().cpu().reshape(-1, 8, 8).numpy()


def _owners(label: str, rows: int, counts: Sequence[int]) -> list[int]:
    if sum(counts) != rows:
        raise ValueError(f"`gpus[{label!r}]` must count {rows} pictures, got {list(counts)}, which are {sum(counts)}")
    return [gpu for gpu, count in enumerate(counts) for _ in range(count)]


def _describe(faces: Mapping[str, np.ndarray], owners: Mapping[str, list[int]]) -> str:
    """How many pictures each batch has and where they came from, and which of them differ from the first batch."""
    (_, first), *_ = faces.items()
    lines = []
    for label, rows in faces.items():
        words = f"{label}: {len(rows)} pictures"
        if label in owners:
            ends = list(accumulate(owners[label].count(gpu) for gpu in sorted(set(owners[label]))))
            spans = zip([0, *ends], ends, sorted(set(owners[label])), strict=False)
            words += ", " + ", ".join(f"{low} to {high - 1} from cuda:{gpu}" for low, high, gpu in spans)
        other = [row for row, (a, b) in enumerate(zip(rows, first, strict=False)) if not np.array_equal(a, b)]
        if other:
            words += f"; different from the first line: {', '.join(map(str, other))}"
        lines.append(words)
    return ". ".join(lines) + "."
