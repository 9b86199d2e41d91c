"""The confusion matrix on boxes that are matched by hand, and what holds for every judged picture."""

import pytest
import torch
from judged_pictures import HERE, NAMES, moved, picture, random_pictures

from frcnn_lite.engine import ConfusionMatrix, confusion_figure, confusion_matrix
from frcnn_lite.ops import box_iou

A, B, C = range(3)
LAST = 3  # "no object", "missed"
THERE = (50.0, 0.0, 60.0, 10.0)


def cells(*pictures, **options):
    """{(row, column): count} of the cells that are not zero."""
    counts = confusion_matrix(pictures, NAMES, **options).counts
    return {(row, column): int(counts[row, column]) for row, column in counts.nonzero().tolist()}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([], {(A, LAST): 1}),
        ([(HERE, A, 0.9)], {(A, A): 1}),
        ([(HERE, B, 0.9)], {(A, B): 1}),
        ([(moved(10 / 3), A, 0.9)], {(A, A): 1}),  # an IoU of one half is enough
        ([(moved(3.4), A, 0.9)], {(A, LAST): 1, (LAST, A): 1}),
        ([(THERE, B, 0.9)], {(A, LAST): 1, (LAST, B): 1}),
        ([(HERE, A, 0.5)], {(A, A): 1}),
        ([(HERE, A, 0.49)], {(A, LAST): 1}),  # not sure enough: neither right nor wrong
        ([(HERE, A, 0.8), (HERE, A, 0.9)], {(A, A): 1, (LAST, A): 1}),
        # The better score comes first, whatever its class and though it overlaps less.
        ([(HERE, A, 0.8), (moved(2.0), B, 0.9)], {(A, B): 1, (LAST, A): 1}),
    ],
)
def test_one_object(found, expected):
    assert cells(picture([(HERE, A)], found)) == expected


def test_a_detection_takes_the_free_object_that_it_overlaps_most():
    objects = [(HERE, A), (moved(2.0), B)]
    assert cells(picture(objects, [(moved(1.8), C, 0.9)])) == {(A, LAST): 1, (B, C): 1}
    assert cells(picture(objects, [(moved(1.8), C, 0.9), (moved(1.9), B, 0.8)])) == {(B, C): 1, (A, B): 1}


def test_ignored_objects_count_neither_way():
    difficult = picture([(HERE, A), (THERE, B)], [(HERE, A, 0.9), (THERE, C, 0.9)], ignored=[1])
    assert cells(difficult) == {(A, A): 1}
    part = (0.0, 0.0, 4.0, 4.0)  # of a crowd, as far as it goes
    crowd = picture([(HERE, A)], [(part, A, 0.9), (part, B, 0.8), (THERE, B, 0.7)], ignored=[0], crowd=[0])
    assert cells(crowd) == {(LAST, B): 1}


def test_pictures_add_up_and_boxes_of_one_are_not_matched_in_another():
    one = picture([(HERE, A)], [(THERE, B, 0.9)])
    other = picture([(THERE, B)], [(THERE, B, 0.9)], image_id=1)
    empty = picture([], [], image_id=2)
    assert cells(one, other, empty) == {(A, LAST): 1, (LAST, B): 1, (B, B): 1}
    assert cells() == {} and cells(empty) == {}


def test_a_picture_that_is_there_twice_is_refused():
    with pytest.raises(ValueError, match=r"`pictures` must be judged once each, got image_id \[7\] more than once"):
        confusion_matrix([picture([(HERE, A)], [], image_id=7)] * 2, NAMES)


def test_the_score_can_be_chosen_and_is_said():
    judged = picture([(HERE, A)], [(HERE, A, 0.3)])
    assert cells(judged, score=0.25) == {(A, A): 1}
    told = confusion_matrix([judged], NAMES, score=0.25).to_dict()
    assert (told["iou"], told["score"], told["counts"][0]) == (0.5, 0.25, [1, 0, 0, 0])
    assert (told["rows"][3], told["columns"][3]) == ("no object", "missed")
    assert told["matching"].startswith("best score first")


@pytest.mark.parametrize("seed", range(20))
def test_every_row_adds_up_to_the_objects_of_its_class(seed):
    pictures = random_pictures(seed, crowds=0.2 * (seed % 2), grid=8 if seed % 3 == 2 else None)
    for score in (0.0, 0.5, 1.1):
        counts = confusion_matrix(pictures, NAMES, score=score).counts
        for label in range(len(NAMES)):
            objects = sum(int(((p.labels == label) & ~p.ignored).sum()) for p in pictures)
            assert counts[label].sum() == objects
        detections = sum(int((p.found_scores >= score).sum()) for p in pictures)
        told = int(counts[:, :-1].sum())
        assert (told == detections if not seed % 2 else told <= detections) and counts[-1, -1] == 0


def by_hand(pictures, score):
    """The rule in plain loops, for pictures without anything to ignore."""
    counts = torch.zeros(len(NAMES) + 1, len(NAMES) + 1, dtype=torch.int64)
    for one in pictures:
        overlap, free = box_iou(one.found_boxes.double(), one.boxes.double()), set(range(len(one.boxes)))
        for index in one.found_scores.argsort(descending=True, stable=True).tolist():
            if one.found_scores[index] >= score:
                near = [row for row in sorted(free) if overlap[index, row] >= 0.5]
                taken = max(near, key=lambda row: overlap[index, row].item(), default=None)
                free -= {taken}
                counts[LAST if taken is None else int(one.labels[taken]), int(one.found_labels[index])] += 1
        for row in free:
            counts[int(one.labels[row]), LAST] += 1
    return counts


@pytest.mark.parametrize("seed", range(12))
def test_matches_are_those_of_the_rule_in_plain_loops(seed):
    pictures = random_pictures(seed, crowds=0)
    assert torch.equal(confusion_matrix(pictures, NAMES).counts, by_hand(pictures, 0.5))


def test_the_figure_shows_every_count_and_the_rule(tmp_path):
    counts = torch.tensor([[7, 2, 1], [0, 0, 0], [3, 0, 0]])
    figure = confusion_figure(ConfusionMatrix(counts, ("dog", "<cat>"), 0.5))
    axes = figure.axes[0]
    assert {text.get_text() for text in axes.texts} == {"7", "2", "1", "3"}
    assert [label.get_text() for label in axes.get_yticklabels()] == ["dog", "<cat>", "no object"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["dog", "<cat>", "missed"]
    assert axes.images[0].get_array().tolist()[0] == pytest.approx([0.7, 0.2, 0.1])
    figure.savefig(tmp_path / "matrix.svg")
