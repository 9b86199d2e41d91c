"""Average precision: pycocotools is asked the right question, and what VOC calls difficult counts as it should."""

import contextlib
import io

import pytest
import torch
from judged_pictures import NAMES, random_pictures

from frcnn_lite.engine.average_precision import Judged, average_precision, class_curves


def xywh(boxes):
    boxes = boxes.double()
    return torch.cat([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]], dim=1).tolist()


def pycocotools_says(pictures):
    """The twelve numbers of its summary (None for -1), and the AP of each class (None without objects)."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    truth, found = [], []
    for one in pictures:
        one = one._replace(boxes=one.boxes / one.scale, found_boxes=one.found_boxes / one.scale)
        for box, label, crowd in zip(xywh(one.boxes), one.labels.tolist(), one.crowd.tolist(), strict=True):
            fields = {"image_id": one.image_id, "category_id": label, "bbox": box, "area": box[2] * box[3]}
            truth.append({**fields, "id": len(truth) + 1, "iscrowd": int(crowd)})
        rows = zip(xywh(one.found_boxes), one.found_labels.tolist(), one.found_scores.tolist(), strict=True)
        found += [{"image_id": one.image_id, "category_id": k, "bbox": box, "score": s} for box, k, s in rows]
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO()
        coco.dataset = {
            "info": {},
            "images": [{"id": one.image_id} for one in pictures],
            "categories": [{"id": k, "name": name} for k, name in enumerate(NAMES)],
            "annotations": truth,
        }
        coco.createIndex()
        judge = COCOeval(coco, coco.loadRes(found), "bbox")
        judge.evaluate()
        judge.accumulate()
        judge.summarize()
    precision = judge.eval["precision"][:, :, :, 0, -1]
    per_class = [float(p.mean()) if p.max() > -1 else None for p in precision.transpose(2, 0, 1)]
    return [number if number > -1 else None for number in judge.stats], per_class


def summary(result):
    """In the order of pycocotools."""
    names = "AP AP50 AP75 AP_small AP_medium AP_large AR1 AR10 AR AR_small AR_medium AR_large"
    return [getattr(result, name) for name in names.split()]


@pytest.mark.parametrize("seed", range(12))
def test_numbers_are_those_of_pycocotools(seed):
    pictures = random_pictures(seed, pictures=3 + seed, crowds=0.15 * (seed % 2), grid=8 if seed % 3 == 2 else None)
    result = average_precision(pictures, NAMES)
    numbers, per_class = pycocotools_says(pictures)
    assert summary(result) == pytest.approx(numbers, abs=1e-9)
    wanted = {name: value for name, value in zip(NAMES, per_class, strict=True) if value is not None}
    assert result.AP_per_class == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("scale", [0.25, 1.0, 4.0])
def test_sizes_are_those_of_the_file_whatever_the_canvas(scale):
    """Boxes of 9 to 49 pixels on the canvas: large in a file of four times its size, small in one of a quarter."""
    pictures = [picture._replace(scale=scale) for picture in random_pictures(3)]
    result = average_precision(pictures, NAMES)
    assert summary(result) == pytest.approx(pycocotools_says(pictures)[0], abs=1e-9)
    assert (result.AP_small is None, result.AP_large is None) == (scale == 0.25, scale > 1 or scale == 1)
    assert result.AR1 < result.AR10 <= result.AR


def judged(boxes, found, scores, ignored=None):
    boxes, found = torch.tensor(boxes).reshape(-1, 4), torch.tensor(found).reshape(-1, 4)
    flags = torch.tensor(ignored or [False] * len(boxes), dtype=torch.bool)
    no_crowd = torch.zeros_like(flags)
    return Judged(
        0, boxes, torch.zeros(len(boxes)), flags, no_crowd, found, torch.tensor(scores), torch.zeros(len(found))
    )


LEFT, RIGHT = [0.0, 0, 10, 10], [50.0, 0, 60, 10]


def test_a_difficult_object_counts_neither_found_nor_missed_nor_found_twice():
    plain = average_precision([judged([LEFT], [LEFT], [0.5])], ["a"])
    missed = average_precision([judged([LEFT, RIGHT], [LEFT], [0.5], [False, True])], ["a"])
    twice = average_precision([judged([LEFT, RIGHT], [LEFT, RIGHT, RIGHT], [0.5, 0.9, 0.8], [False, True])], ["a"])
    assert pytest.approx([1.0] * 3) == [plain.AP, missed.AP, twice.AP]
    assert plain.objects == missed.objects == 1


def test_a_difficult_object_overlaps_as_an_object_does_and_a_crowd_as_a_region():
    """A small box within a large one: a part of the crowd, and no detection of the difficult object."""
    small = [0.0, 0, 4, 4]
    difficult = judged([LEFT, RIGHT], [RIGHT, small], [0.5, 0.9], [True, False])
    crowd = difficult._replace(crowd=difficult.ignored)
    assert pytest.approx(1.0) == average_precision([crowd], ["a"]).AP50
    assert pytest.approx(0.5) == average_precision([difficult], ["a"]).AP50


def test_a_second_detection_of_an_object_is_wrong():
    curve = class_curves([judged([LEFT, RIGHT], [LEFT, LEFT, RIGHT], [0.9, 0.8, 0.7])], ["a"])["a"]
    assert curve.precision[0, 50] == pytest.approx(1.0)  # recall 0.5: before the double
    assert curve.precision[0, 51] == pytest.approx(2 / 3)


def test_nothing_found_and_nothing_to_find():
    nothing = average_precision([judged([LEFT], [], [])], ["a", "b"])
    assert (nothing.AP, nothing.AR, nothing.AP50_per_class) == (0.0, 0.0, {"a": 0.0})
    assert average_precision([judged([], [LEFT], [0.5])], ["a"]).AP50_per_class == {}
    assert average_precision([], ["a"]).images == 0


def test_one_of_two_found_is_half():
    result = average_precision([judged([LEFT, RIGHT], [LEFT], [0.9])], ["a", "b"])
    assert pytest.approx(51 / 101) == result.AP50  # 101 recall points, precise up to recall 0.5
    assert list(result.AP50_per_class) == ["a"]  # "b" has no object, so no precision


def test_an_empty_picture_only_costs_when_something_is_found_in_it():
    found, empty = judged([LEFT], [LEFT], [0.5]), judged([], [], [])._replace(image_id=1)
    ghost = judged([], [LEFT], [0.9])._replace(image_id=1)
    assert pytest.approx(1.0) == average_precision([found, empty], ["a"]).AP50
    assert pytest.approx(0.5) == average_precision([found, ghost], ["a"]).AP50


def test_only_the_best_detections_of_a_picture_are_looked_at():
    picture = judged([LEFT, RIGHT], [LEFT, RIGHT], [0.9, 0.8])
    assert average_precision([picture], ["a"], max_detections=1).AR == 0.5


def test_a_picture_judged_twice_is_refused():
    picture = judged([LEFT], [LEFT], [0.5])
    with pytest.raises(ValueError, match=r"`pictures` must be judged once each, got image_id \[0\] more than once"):
        average_precision([picture, picture], ["a"])
