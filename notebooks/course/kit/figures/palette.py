"""The colours of the series: GPU k has one colour everywhere.

Okabe and Ito, "Color Universal Design" (2008): eight colours that people with any common colour blindness tell apart.
"""

from course.kit.figures.svg import PAPER

BLUE, ORANGE, GREEN, PURPLE = "#0072b2", "#e69f00", "#009e73", "#cc79a7"
SKY, VERMILLION, YELLOW, BLACK = "#56b4e9", "#d55e00", "#f0e442", "#000000"

GPU_COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILLION, YELLOW, BLACK)
# What memory is for, in the order of `memory_kinds.KINDS`, and other parts of a whole. They are not devices, so they
# have colours of their own: the scheme "muted" of Tol, "Colour Schemes" (2021), made for all kinds of colour vision.
KIND_COLOURS = ("#332288", "#44aa99", "#882255", "#999933", "#cc6677", "#ddcc77")
# Of the same scheme, one light and one dark, so that they differ without their hue as well.
RIGHT_COLOUR, WRONG_COLOUR = KIND_COLOURS[1], KIND_COLOURS[2]
CPU_COLOUR = "#8c959f"
LOST_COLOUR = "#59636e"


def gpu_colour(index: int) -> str:
    """The colour of cuda:index, 0..7."""
    if not 0 <= index < len(GPU_COLOURS):
        raise ValueError(f"`index` is {index}: figures know GPUs 0 to {len(GPU_COLOURS) - 1}")
    return GPU_COLOURS[index]


def channels(colour: str) -> tuple[int, int, int]:
    """Red, green and blue, 0..255, of a colour written #rrggbb."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def blend(colour: str, share: float, ground: str = PAPER) -> str:
    """`share` of `colour` over `ground`, 0..1. A solid tint, where opacity would let through what lies beneath."""
    mixed = (round(share * c + (1 - share) * g) for c, g in zip(channels(colour), channels(ground), strict=True))
    return "#" + "".join(f"{value:02x}" for value in mixed)


def luminance(colour: str) -> float:
    """Relative luminance 0..1 as WCAG 2.1 defines it."""
    linear = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in channels(colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Contrast ratio 1..21 of two colours as WCAG 2.1 defines it."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def ink_on(ground: str) -> str:
    """Black or white, whichever reads better on `ground`."""
    return max((BLACK, PAPER), key=lambda ink: contrast(ink, ground))
