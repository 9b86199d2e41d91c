"""The stored runs of notebook 22: their folder is the notebook's, and the program that made them still works."""

import shutil

import pytest
import torch

from course.lessons.nb22 import own_boxes_film, voc_folder
from frcnn_lite import engine
from frcnn_lite.data import AnnotatedPictures, DataSource, DigitScenes
from frcnn_lite.ops import box_iou


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return own_boxes_film.repaired_folder(tmp_path_factory.mktemp("film") / "digits")


def test_the_repaired_folder_says_what_the_scenes_show(folder):
    """The notebook repairs by hand, so a box may be a pixel off; no name is."""
    source = DataSource.parse(f"voc:{folder}")
    written, broken = source.read()
    found = AnnotatedPictures(written, DigitScenes.class_names, defects=broken)
    scenes = DigitScenes("train", 120, seed=22, size=96)
    assert found.defects == () and len(found) == 119
    for index, picture in enumerate(found.pictures):
        scene, annotated = scenes[int(picture.file.stem)], found[index]
        overlap, nearest = box_iou(annotated.boxes, scene.boxes).max(dim=1)
        assert sorted(nearest.tolist()) == list(range(len(scene.boxes))) and overlap.min() > 0.85
        assert annotated.labels.tolist() == scene.labels[nearest].tolist()


@pytest.mark.parametrize("name", own_boxes_film.PLANS)
def test_a_run_is_stopped_judged_and_gone_on_with(folder, tmp_path, name):
    copy = shutil.copytree(folder, tmp_path / "copy", ignore=shutil.ignore_patterns("run*"))
    if name == "weights":
        voc_folder.rename(copy, own_boxes_film.WORDS)
    kept = own_boxes_film.film(copy, own_boxes_film.PLANS[name], (1, 2))
    assert [step for step, *_ in kept] == [1, 2]
    for _, ap, ap50, found in kept:
        assert 0 <= ap <= ap50 <= 1 and len(found) == own_boxes_film.SHOWN
        assert all(len(boxes) == len(scores) == len(labels) for boxes, scores, labels in found)


def test_what_is_stored_are_these_runs():
    runs = own_boxes_film.read()
    assert {name: tuple(moment.step for moment in runs[name]) for name in runs} == own_boxes_film.MOMENTS
    numbers = [moment.AP50 for moment in runs["scratch"]]
    assert numbers == sorted(numbers)
    assert all(len(scores) for _, scores, _ in runs["weights"][-1].found)


@pytest.mark.parametrize("words", [False, True])
def test_examples_have_their_digits(folder, tmp_path, words):
    """Whatever the folder calls them: pictures are found by their file names, and scenes have numbers."""
    copy = shutil.copytree(folder, tmp_path / "copy", ignore=shutil.ignore_patterns("run*"))
    if words:
        voc_folder.rename(copy, own_boxes_film.WORDS)
    images, truth = own_boxes_film.examples(engine.resolve(data=f"voc:{copy}", steps=1))
    scenes = DigitScenes("train", 120, seed=22, size=96)
    for image, (boxes, digits) in zip(images, truth, strict=True):
        (scene,) = (scene for scene in map(scenes.__getitem__, range(120)) if torch.equal(scene.image, image))
        _, nearest = box_iou(boxes, scene.boxes).max(dim=1)
        assert digits.tolist() == scene.labels[nearest].tolist()
