"""Which thread of a kernel computes which output, and in which order the numbers of a tensor lie in memory."""

from collections.abc import Mapping

from torch import Tensor

from course.kit.figures.palette import KIND_COLOURS, blend, ink_on
from course.kit.figures.svg import FAINT, INK, Canvas, Figure

CELL, SLOT, GAP, TOP, LEFT, LETTER = 30, 24, 28, 70, 18, 7.4  # SLOT: the width of a number in memory


def thread_map(shape: tuple[int, int, int, int], title: str) -> Figure:
    """Draw outputs (regions, channels, rows, columns) as panels of cells, each with the index of its thread.

    Raises ValueError for a dimension of 0, and for more channels than there are colours.
    """
    regions, channels, ph, pw = shape
    _check_channels(channels)
    if min(shape) < 1:
        raise ValueError(f"`shape` must be of 1 or more in every dimension, got {shape}")
    across, down = pw * CELL + GAP, ph * CELL + GAP + 10
    width = max(2 * LEFT + channels * across - GAP, 40 + 9 * len(title))
    canvas = Canvas(width, TOP + regions * down - GAP + 8, title, _describe(shape), at=(16, 28))
    for r in range(regions):
        for c in range(channels):
            x, y = LEFT + c * across, TOP + r * down
            canvas.text(x, y - 7, f"region {r}, channel {c}", size=12, fill=FAINT)
            colour = _tint(c)
            for k in range(ph * pw):
                left, top = x + k % pw * CELL, y + k // pw * CELL
                canvas.rect(left, top, CELL, CELL, fill=colour, stroke=INK, stroke_width=0.6)
                index = (r * channels + c) * ph * pw + k
                canvas.text(left + CELL / 2, top + 20, index, size=12, anchor="middle", fill=ink_on(colour))
    return canvas.figure()


def memory_order(tensors: Mapping[str, Tensor], title: str) -> Figure:
    """Draw the numbers of each tensor (1, C, H, W) in the order in which they lie in memory, coloured by channel.

    Raises ValueError where there is nothing to draw, a tensor is not dense, or it has more channels than colours.
    """
    sizes = {tensor.numel() for tensor in tensors.values()}
    if not sizes or 0 in sizes or any(len(t) != 1 or _span(t) != t.numel() for t in tensors.values()):
        raise ValueError(f"`tensors` must be dense, of one image and not empty, got {list(tensors)}")
    channels = max(tensor.shape[1] for tensor in tensors.values())
    _check_channels(channels)
    left, foot = LEFT + max(62, 14 + LETTER * max(map(len, tensors))), 42
    width = max(left + max(sizes) * SLOT + LEFT, 40 + 9 * len(title))
    height = TOP + len(tensors) * (CELL + 16) + foot - 16
    told = {label: _in_memory(tensor) for label, tensor in tensors.items()}
    words = ". ".join(f"{name}: " + ", ".join(f"{value:g}" for value, _ in row) for name, row in told.items())
    canvas = Canvas(width, height, title, f"In the order of memory. {words}.", at=(16, 28))
    canvas.text(LEFT, TOP - 10, "address", size=12, fill=FAINT)
    for k in range(max(sizes)):
        canvas.text(left + (k + 0.5) * SLOT, TOP - 10, k, size=12, anchor="middle", fill=FAINT)
    for row, (label, numbers) in enumerate(told.items()):
        y = TOP + row * (CELL + 16)
        canvas.text(LEFT, y + 20, label, font_weight="bold")
        for k, (value, channel) in enumerate(numbers):
            colour = _tint(channel)
            canvas.rect(left + k * SLOT, y, SLOT, CELL, fill=colour, stroke=INK, stroke_width=0.6)
            canvas.text(left + (k + 0.5) * SLOT, y + 20, f"{value:g}", anchor="middle", fill=ink_on(colour))
    for channel in range(channels):
        x = left + channel * 110
        canvas.rect(x, height - 28, 14, 14, fill=_tint(channel), stroke=INK, stroke_width=0.6)
        canvas.text(x + 20, height - 17, f"channel {channel}", size=12, fill=FAINT)
    return canvas.figure()


def _in_memory(tensor: Tensor) -> list[tuple[float, int]]:
    """The numbers of a tensor and their channels, by their addresses."""
    _, channel, row, column = tensor.stride()
    _, channels, height, width = tensor.shape
    found = {
        c * channel + i * row + j * column: (float(tensor[0, c, i, j]), c)
        for c in range(channels)
        for i in range(height)
        for j in range(width)
    }
    return [found[address] for address in sorted(found)]


def _span(tensor: Tensor) -> int:
    """Addresses from the first number of a tensor to its last."""
    return 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))


def _tint(channel: int) -> str:
    return blend(KIND_COLOURS[channel], 0.45)


def _check_channels(channels: int) -> None:
    if channels > len(KIND_COLOURS):
        raise ValueError(f"there are colours for {len(KIND_COLOURS)} channels, got {channels}")


def _describe(shape: tuple[int, int, int, int]) -> str:
    regions, channels, ph, pw = shape
    panels = []
    for r in range(regions):
        for c in range(channels):
            first = (r * channels + c) * ph * pw
            panels.append(f"region {r}, channel {c}: threads {first} to {first + ph * pw - 1}")
    return f"Each panel has {ph} rows and {pw} columns, numbered row by row. " + "; ".join(panels) + "."
