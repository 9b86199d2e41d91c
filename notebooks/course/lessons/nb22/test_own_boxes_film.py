"""The stored run of notebook 22: its folder is the notebook's, and the program that made it still works."""

import nbformat
import pytest

from course.kit.files import NOTEBOOKS
from course.lessons.nb22 import own_boxes_film
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


def test_a_run_is_stopped_judged_and_gone_on_with(folder):
    kept = own_boxes_film.film(folder, (1, 2))
    assert [step for step, *_ in kept] == [1, 2]
    for _, ap, ap50, found in kept:
        assert 0 <= ap <= ap50 <= 1 and len(found) == own_boxes_film.SHOWN
        assert all(len(boxes) == len(scores) == len(labels) for boxes, scores, labels in found)


def test_what_is_stored_is_one_run(folder):
    moments = own_boxes_film.read()
    assert [moment.step for moment in moments] == list(own_boxes_film.MOMENTS)
    numbers = [moment.AP50 for moment in moments]
    assert numbers == sorted(numbers) and numbers[-1] > 0.4
    assert any(len(scores) for _, scores, _ in moments[-1].found)


def test_the_notebook_counts_the_digits_that_have_a_box_at_the_end(folder):
    """With a score of at least 0.3 and an overlap of at least one half, as its figure draws them."""
    shown = engine.Pictures().held_out(engine.resolve(data=f"voc:{folder}", steps=1), own_boxes_film.SHOWN)
    digits = boxed = right = 0
    for number, (boxes, scores, labels) in enumerate(own_boxes_film.read()[-1].found):
        sure, scene = scores >= 0.3, shown[number]
        near = box_iou(scene.boxes, boxes[sure]) >= 0.5
        digits += len(scene.boxes)
        boxed += int(near.any(dim=1).sum())
        right += int((near & (scene.labels[:, None] == labels[sure])).any(dim=1).sum())
    (path,) = NOTEBOOKS.glob("22_*.ipynb")
    text = " ".join(cell.source for cell in nbformat.read(path, as_version=4).cells)
    assert f"a box on {boxed} of the {digits} digits in the figure, but only on {right} of them with the" in text
