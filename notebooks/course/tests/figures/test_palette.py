"""Colours can be told apart, also by readers who see two kinds of cone only."""

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from course.kit.figures.palette import GPU_COLOURS, KIND_COLOURS, blend, channels, contrast, gpu_colour, ink_on

# Linear RGB as a dichromat sees it: Vienot, Brettel and Mollon, "Digital video colourmaps for checking the legibility
# of displays by dichromats", Color Research and Application 24(4), 1999.
VISION = {
    "three cones": np.eye(3),
    "protanopia": np.array([[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]]),
    "deuteranopia": np.array([[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]]),
}
SRGB_TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def lab(colour, vision):
    """CIE L*a*b* of a colour as one kind of vision receives it."""
    linear = (np.array(channels(colour)) / 255) ** 2.2
    xyz = SRGB_TO_XYZ @ np.clip(vision @ linear, 0, 1) / np.array([0.9505, 1, 1.089])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("colours", [GPU_COLOURS, KIND_COLOURS], ids=["GPUs", "kinds"])
@pytest.mark.parametrize("vision", VISION)
def test_colours_are_far_apart(vision, colours):
    apart = {
        (a, b): np.linalg.norm(lab(a, VISION[vision]) - lab(b, VISION[vision])) for a, b in combinations(colours, 2)
    }
    closest = min(apart, key=apart.get)
    assert apart[closest] > 10, closest  # 2.3 is the least difference an eye notices


def test_a_kind_has_no_colour_of_a_gpu():
    eye = VISION["three cones"]
    apart = {(a, b): np.linalg.norm(lab(a, eye) - lab(b, eye)) for a in KIND_COLOURS for b in GPU_COLOURS}
    closest = min(apart, key=apart.get)
    assert apart[closest] > 10, closest


OF_DEVICES = {"palette.py", "__init__.py"}  # they define all eight
COURSE = Path(__file__).parents[2]
DRAWN = [*(COURSE / "kit" / "figures").glob("*.py"), *(COURSE / "lessons").glob("nb*/*.py")]
LEFT_OUT = OF_DEVICES | {path.name for path in DRAWN if path.name.startswith("test_")}
FIGURES = [path for path in DRAWN if "course.kit.figures" in path.read_text("utf-8") and path.name not in LEFT_OUT]


@pytest.mark.parametrize("path", sorted(FIGURES), ids=lambda path: path.stem)
def test_a_figure_takes_a_gpu_colour_by_the_number_of_a_gpu(path):
    """Whoever draws something else has no reason to name one of the eight; black is ink as well."""
    named = re.findall(
        r"\b(BLUE|ORANGE|GREEN|PURPLE|SKY|VERMILLION|YELLOW|GPU_COLOURS)\b", path.read_text(encoding="utf-8")
    )
    assert named == []


@pytest.mark.parametrize("colour", [*GPU_COLOURS, *KIND_COLOURS])
def test_names_on_gpu_colours_can_be_read(colour):
    assert contrast(ink_on(colour), colour) >= 4.5  # level AA of WCAG


def test_contrast_of_black_and_white_is_21():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


def test_blend_runs_from_ground_to_colour():
    assert blend("#0072b2", 0) == "#ffffff"
    assert blend("#0072b2", 1) == "#0072b2"
    assert blend("#000000", 0.5) == "#808080"


@pytest.mark.parametrize("index", [-1, 8])
def test_unknown_gpu_is_refused(index):
    with pytest.raises(ValueError, match=f"`index` is {index}"):
        gpu_colour(index)
