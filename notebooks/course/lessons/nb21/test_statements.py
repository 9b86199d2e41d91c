"""Numbers and statements in the prose of notebook 21 that no output shows, computed and run again."""

import math
import re
from collections import Counter

import pytest
import torch
from told import notebook, output, prose, says

from course.kit.files import CHECKPOINTS
from course.kit.learn.by_key import find_question
from course.lessons.nb21.detection_errors import find_errors
from frcnn_lite import engine, ops


@pytest.fixture(scope="module")
def pictures():
    return engine.Pictures().held_out(engine.TrainConfig(), 100)


@pytest.fixture(scope="module")
def judged(pictures):
    return engine.judge(engine.load_weights(CHECKPOINTS / "digits.pt"), pictures)


def test_says_by_which_number_which_repair_is_worth_more():
    (cell,) = (cell for _, cell in notebook("21").code if "of_names, of_boxes" in cell.source)
    drawn = " ".join("".join(shown.get("data", {}).get("text/plain", "")) for shown in cell.outputs)
    bars = dict(re.findall(r"(AP\w*, [\w ]+): (\d\.\d\d)", drawn))
    as_it_is, names, exact = (
        {kind: float(bars[f"{kind}, {name}"]) for kind in ("AP", "AP50")}
        for name in ("as it is", "right names", "exact boxes")
    )
    assert exact["AP"] - as_it_is["AP"] > 5 * (names["AP"] - as_it_is["AP"]) > 0
    assert names["AP50"] > as_it_is["AP50"] == exact["AP50"]
    text = prose("21")
    assert f"bring most of what is left to gain: from {as_it_is['AP50']:.2f} to {names['AP50']:.2f}" in text
    assert f"right names bring {as_it_is['AP']:.2f} to {names['AP']:.2f}, and exact boxes {exact['AP']:.2f}." in text


def test_asks_about_the_lists_that_it_prints():
    question = find_question("21.floor")
    counts = re.findall(r"(\d+) boxes, +(\d+) of them wrong", output("21", "def surest"))
    (boxes, wrong), (sure, sure_wrong) = counts
    assert f"by all {int(boxes):,} boxes, {wrong} of them wrong" in question.text
    assert f"by the {sure} with a score of 0.5 or more, {sure_wrong} of them wrong" in question.text


def test_says_how_many_digits_are_small(judged):
    sides = torch.cat([picture.boxes for picture in judged])
    areas = (sides[:, 2:] - sides[:, :2]).prod(dim=1)
    small = int((areas < 32**2).sum())
    assert says("21", f"Of our {len(areas)} digits {small} are small and {len(areas) - small} medium")
    assert areas.max() < 96**2


def test_no_digit_is_found_by_the_box_in_the_corner(judged):
    corner = torch.tensor([[0.0, 0, 60, 60]])
    assert max(float(ops.box_iou(corner, picture.boxes).max()) for picture in judged if len(picture.boxes)) < 0.5
    assert 32**2 < 60 * 60 < 96**2


def test_the_mean_over_ranks_depends_on_their_number(judged, pictures):
    def mean(ranks):
        shares = [judged[rank::ranks] for rank in range(ranks)]
        return sum(engine.average_precision(share, pictures.class_names).AP for share in shares) / ranks

    assert len({round(mean(ranks), 3) for ranks in (1, 2, 4, 5)}) == 4


def test_pictures_that_a_sampler_repeats():
    fills = {ranks: ranks * math.ceil(5000 / ranks) - 5000 for ranks in (64, 8)}
    assert fills == {64: 56, 8: 0} and says("21", f"{fills[64]}, because 64 · 79 = 5,056")


def test_most_of_what_it_is_sure_of_and_wrong_has_a_wrong_name(judged):
    kinds = Counter(error.kind for error in find_errors(judged) if error.score >= 0.5)
    assert kinds["wrong class"] > 0.7 * kinds.total() and says("21", "Nearly all of them are on a digit")
