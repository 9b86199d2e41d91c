"""Numbers and statements in the prose of notebook 22 that no output shows, computed and run again."""

import math
import re
from xml.etree import ElementTree

import pytest
import torch
from PIL import Image
from told import cell, output, says

from course.kit import training_film
from course.lessons.nb22 import own_boxes_film, voc_folder
from frcnn_lite import data, engine, ops
from frcnn_lite.ops.matching import match


def test_does_not_train_on_the_class_that_it_warned_of():
    (classes,) = (line for line in output("22", "engine.resolve").splitlines() if line.startswith("classes:"))
    assert classes.split()[1:] == list("0123456789")
    assert "smudge (1)" in output("22", "mine = None")


def test_reads_its_table_of_losses_right():
    """One row is nan, and there the sum that is finite is far larger than in any other picture."""
    rows = [line.split() for line in output("22", "for row, picture in").splitlines()[1:] if line.strip()]
    broken = [row for row in rows if "nan" in row]
    assert [row[0] for row in broken] == ["10"] and [k for k, text in enumerate(broken[0]) if text == "nan"] == [2, 4]
    assert float(broken[0][1]) > 10 * max(float(row[1]) for row in rows if row is not broken[0])
    assert says("22", "the sum of `rpn_objectness` is finite and far larger than that of any other picture")
    nan = torch.full((1, 1, 3), torch.nan)
    real = torch.ones(1, 1, dtype=torch.bool)
    assert match(nan, real, 0.6, 0.3, allow_low_quality=True).tolist() == [[0, 0, 0]]  # all belong to that box


def test_shows_wrong_annotations_whose_losses_look_sound():
    """33 and 58 are damaged, 17 is not: a loss of theirs is large, but 17 has one as large."""
    rows = [line.split() for line in output("22", "for row, picture in").splitlines()[1:] if line.strip()]
    sums = {row[0]: [float(text) for text in row[1:]] for row in rows}
    for damaged in ("33", "58"):
        assert all(a < 1.1 * b + 0.2 for a, b in zip(sums[damaged], sums["17"], strict=True))
    assert says("22", "None of them stands out: picture 17, which is annotated correctly, has sums of the same size")


def test_shows_two_faults_that_its_audit_passes():
    assert re.findall(r"(a 5 .*): (\d+) defects", output("22", "a 5 left out")) == [
        ("a 5 called an 8", "0"),
        ("a 5 left out", "0"),
    ]


def test_says_how_its_folder_counts_pixels(tmp_path):
    """The loader that the notebook trusts takes the numbers as they stand, so it begins every box a pixel too late."""
    scenes = data.DigitScenes("train", 2, seed=22, size=96)
    voc_folder.write_voc(tmp_path, scenes)
    names = {"folder": tmp_path, "ElementTree": ElementTree, "Image": Image, "torch": torch}
    exec(cell("22", "def trusting").split("\n\n\n")[0], names)
    off = names["trusting"]("0001") - scenes[1].boxes.round()
    assert off.tolist() == [[1, 1, 0, 0]] * len(off) and len(off)
    assert says("22", "begins a pixel too far to the right and a pixel too low")


def test_says_how_its_detectors_treat_a_box_without_width():
    flat, anchor = torch.tensor([[20.0, 12, 20, 28]]), torch.tensor([[10.0, 10, 30, 30]])
    width = float(ops.encode_boxes(flat, anchor, torch.ones(4))[0, 2])
    assert width == pytest.approx(math.log(0.001 / 20), rel=1e-5)
    assert says("22", "takes a thousandth of a pixel for its width")


def test_compares_its_run_with_that_of_notebook_20():
    other = training_film.read()["A"].at(1200).AP50
    assert says("22", f"had an AP50 of {other:.2f} by then")
    (trained,) = re.findall(r"pictures to train on: (\d+)", output("22", "engine.resolve"))
    steps, batch = own_boxes_film.MOMENTS[-1], engine.TrainConfig().batch_size
    assert says("22", f"After {steps:,} steps")
    assert says("22", f"each of {trained} pictures is shown about a hundred times")
    assert 95 < steps * batch / int(trained) < 110
