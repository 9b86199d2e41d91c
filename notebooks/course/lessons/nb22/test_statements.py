"""Numbers and statements in the prose of notebook 22 that no output shows, computed and run again."""

import re
from xml.etree import ElementTree

import pytest
import torch
from PIL import Image
from told import cell, output, says

from course.kit.files import CHECKPOINTS
from course.lessons.nb22 import own_boxes_film, voc_folder
from frcnn_lite import data, engine
from frcnn_lite.engine import start
from frcnn_lite.engine.trainer import build_model
from frcnn_lite.ops.matching import match


def test_reads_its_table_of_losses_right():
    """One row is nan, and there two sums are finite."""
    rows = [line.split() for line in output("22", "for row, picture in").splitlines()[1:] if line.strip()]
    broken = [row for row in rows if "nan" in row]
    assert [row[0] for row in broken] == ["10"] and [k for k, text in enumerate(broken[0]) if text == "nan"] == [2, 4]
    assert says("22", "one row has `nan`. It leads to `0010.xml`") and says("22", "Why are two of its sums finite?")
    nan = torch.full((1, 1, 3), torch.nan)
    real = torch.ones(1, 1, dtype=torch.bool)
    assert match(nan, real, 0.6, 0.3, allow_low_quality=True).tolist() == [[0, 0, 0]]  # all belong to that box


def test_shows_wrong_annotations_whose_losses_look_sound():
    """33 and 58 are damaged, 17 is not: a loss of theirs is large, but 17 has one as large."""
    rows = [line.split() for line in output("22", "for row, picture in").splitlines()[1:] if line.strip()]
    sums = {row[0]: [float(text) for text in row[1:]] for row in rows}
    for damaged in ("33", "58"):
        assert all(a < 1.1 * b + 0.2 for a, b in zip(sums[damaged], sums["17"], strict=True))
    assert says("22", "17, which is annotated correctly, has sums of the same size")


def test_names_two_faults_that_every_check_passes(tmp_path):
    scenes = data.DigitScenes("train", 34, seed=22, size=96)
    voc_folder.write_voc(tmp_path, scenes)
    written, _ = data.DataSource.parse(f"voc:{tmp_path}").read()
    (right,) = (picture for picture in written if picture.file.stem == "0033")
    (five,) = (thing for thing in right.objects if thing.name == "5")
    others = tuple(thing for thing in right.objects if thing is not five)
    for objects in ((five._replace(name="8"), *others), others):
        assert not data.AnnotatedPictures([right._replace(objects=objects)], scenes.class_names).defects
    assert says("22", "a 5 in 0033 that is called an 8, or left out, passes every check")


def test_says_what_becomes_of_a_dropped_box(tmp_path):
    """It is dropped, or its picture is left out; a picture that loses all its boxes is left out."""
    scenes = data.DigitScenes("train", 6, seed=22, size=96)
    names = voc_folder.write_voc(tmp_path, scenes)
    voc_folder.edit(tmp_path, names[0], 0, xmax="nan")
    for number in range(len(scenes[1].boxes)):
        voc_folder.edit(tmp_path, names[1], number, xmax="nan")
    written, _ = data.DataSource.parse(f"voc:{tmp_path}").read()
    for choices, left in (([], {1}), (["no_area=skip"], {0, 1})):
        found = data.AnnotatedPictures(written, scenes.class_names, data.Handling.parse(choices), ())
        assert {picture.file.stem for picture in found.pictures} == {n for k, n in enumerate(names) if k not in left}
    assert says("22", "`--handle no_area=skip` leaves the picture out. (One that loses all its boxes is left out by")


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
    model = engine.load_weights(CHECKPOINTS / "digits.pt")
    flat = torch.tensor([[[20.0, 12, 20, 28]]]), torch.tensor([[3]]), torch.tensor([0])
    with pytest.raises(ValueError, match="x1 < x2"):
        model(torch.rand(1, 3, 96, 96), *flat)
    assert says("22", "torchvision raises an error, and on the CPU so does our detector")


def test_says_what_its_runs_from_scratch_find():
    numbers = {moment.step: f"{moment.AP50:.2f}" for moment in own_boxes_film.read()["scratch"]}
    told = f"AP50 is {numbers[60]} after 60 steps of eight, {numbers[300]} after 300, and {numbers[1200]} after 1,200"
    assert says("22", told) and engine.TrainConfig().batch_size == 8


def test_trains_by_the_plan_of_the_film():
    names = {"CHECKPOINTS": CHECKPOINTS}
    (line,) = (line for line in cell("22", "start = {").splitlines() if line.startswith("start = {"))
    exec(line, names)
    plan = own_boxes_film.PLANS["weights"]
    assert names["start"] == {name: plan[name] for name in names["start"]}
    assert "batch_size=4, gpus=2, flip=0.0" in cell("22", "start = {") and (plan["batch_size"], plan["flip"]) == (4, 0)


def test_begins_the_layers_that_know_the_classes_anew():
    config = engine.resolve(**own_boxes_film.PLANS["weights"], steps=1)
    model = build_model(config.model, config.seed)
    taken, _ = start.weights_for(model, config.weights, own_boxes_film.WORDS)
    anew = {name for name in model.state_dict() if name not in taken}
    assert {".".join(name.split(".")[:2]) for name in anew} == {"box_head.classify", "box_head.regress"}
    rates = {group["initial_lr"] for group in engine.Trainer(config).optimizer.param_groups}
    assert sorted(rates) == pytest.approx([config.lr / 10, config.lr])
    assert says("22", "The backbone gets a tenth of the learning rate.")


def test_says_that_half_of_the_pictures_are_mirrored(tmp_path):
    voc_folder.write_voc(tmp_path, data.DigitScenes("train", 12, seed=22, size=96))
    assert engine.resolve(data=f"voc:{tmp_path}", steps=1).flip == 0.5
    assert says("22", "Half of them are mirrored.")


def test_groups_by_shape_give_ranks_different_numbers_of_steps():
    steps = re.findall(r"(\d+) steps", output("22", "share = Counter"))
    assert steps == ["11", "12"] and says("22", "In its last step rank 1 waits until the group's time-out.")
    assert output("22", "share = Counter").count("48 pictures") == 2  # 96 of 95
