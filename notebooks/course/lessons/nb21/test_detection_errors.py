"""Each kind of error on boxes whose overlap is known by hand."""

import random

import pytest
from judged_pictures import HERE, moved, picture

from course.lessons.nb21.detection_errors import find_errors
from frcnn_lite.engine.average_precision import evaluation

A, B = 0, 1


def told(*pictures):
    return [(error.kind, error.picture, error.label, error.object) for error in find_errors(pictures)]


@pytest.mark.parametrize(
    ("box", "label", "expected"),
    [
        (HERE, A, []),
        (moved(10 / 3), A, []),  # an IoU of one half is enough
        (moved(4.0), A, [("localisation", 0, A, 0)]),
        (moved(9.0), A, [("background", 0, A, None), ("missed", 0, A, 0)]),
        (moved(2.0), B, [("wrong class", 0, B, 0)]),  # the object is not missed besides: it was seen
        (moved(4.0), B, [("class and place", 0, B, 0), ("missed", 0, A, 0)]),
        (moved(30.0), B, [("background", 0, B, None), ("missed", 0, A, 0)]),
    ],
)
def test_one_object_and_one_detection(box, label, expected):
    assert told(picture([(HERE, A)], [(box, label, 0.9)])) == expected


def test_the_second_detection_of_an_object_is_a_duplicate_and_of_equal_scores_the_first_is_right():
    assert told(picture([(HERE, A)], [(moved(3.0), A, 0.8), (HERE, A, 0.9)])) == [("duplicate", 0, A, 0)]
    tied = find_errors([picture([(HERE, A)], [(moved(1.0), A, 0.5), (moved(2.0), A, 0.5)])])
    assert [(error.kind, error.box.tolist()) for error in tied] == [("duplicate", list(moved(2.0)))]


def test_of_two_reasons_the_larger_overlap_wins_and_of_two_objects_the_nearer():
    far = (0.0, 40.0, 10.0, 50.0)
    two = [(HERE, A), (moved(4.0), B)]
    assert told(picture(two, [(moved(5.0), A, 0.9)])) == [("wrong class", 0, A, 1), ("missed", 0, A, 0)]
    same = [(far, A), (moved(6.0), A), (moved(1.0), A)]  # 0.21 and 0.43 from (-3, 7): the last is nearer
    assert told(picture(same, [(moved(-3.0), A, 0.9)]))[0] == ("localisation", 0, A, 2)


def test_errors_come_by_falling_score_then_missed_objects_by_size():
    small, large = (50.0, 50.0, 52.0, 52.0), (0.0, 50.0, 40.0, 90.0)
    errors = find_errors(
        [
            picture([(small, A)], [((70.0, 0.0, 80.0, 10.0), A, 0.3), ((70.0, 0.0, 80.0, 10.0), B, 0.7)]),
            picture([(large, B)], [(HERE, A, 0.5)], image_id=1),
        ]
    )
    assert [(error.kind, error.picture, round(error.score, 2)) for error in errors] == [
        *[("background", 0, 0.7), ("background", 1, 0.5), ("background", 0, 0.3)],
        *[("missed", 1, 0.0), ("missed", 0, 0.0)],
    ]


def test_what_is_ignored_is_neither_missed_nor_found_twice_but_may_explain():
    objects = [(HERE, A), ((0.0, 20.0, 40.0, 60.0), B)]
    one = {"ignored": [0], "crowd": [1]}
    assert told(picture(objects, [], **one)) == []
    inside = (5.0, 25.0, 12.0, 31.0)  # a small part of the crowd, and as often as one likes
    found = [(HERE, A, 0.9), (moved(1.0), A, 0.8), (inside, B, 0.7), (inside, B, 0.6)]
    assert told(picture(objects, found, **one)) == []
    assert told(picture(objects, [(HERE, B, 0.9), (inside, A, 0.8)], **one)) == [
        ("wrong class", 0, B, 0),
        ("wrong class", 0, A, 1),
    ]


def test_nothing_found_nothing_there_and_no_pictures():
    assert told(picture([(HERE, A), (moved(30.0), B)], [])) == [("missed", 0, A, 0), ("missed", 0, B, 1)]
    assert told(picture([], [(HERE, A, 0.5)])) == [("background", 0, A, None)]
    assert told(picture([], [])) == told() == []


@pytest.mark.parametrize("seed", range(5))
def test_wrong_detections_are_those_that_average_precision_counts_as_wrong(seed):
    rand = random.Random(seed)

    def box():
        x, y = rand.uniform(0, 30), rand.uniform(0, 30)
        return x, y, x + rand.uniform(5, 20), y + rand.uniform(5, 20)

    pictures = []
    for image_id in range(20):
        objects = [(box(), rand.randrange(2)) for _ in range(rand.randrange(6))]
        found = [(box(), rand.randrange(2), rand.randrange(10) / 10) for _ in range(rand.randrange(20))]
        found += [(place, rand.randrange(2), rand.randrange(10) / 10) for place, _ in objects]
        pictures.append(picture(objects, found, image_id, ignored=[0], crowd=[1]))
    errors = find_errors(pictures)
    results = [result for result in evaluation(pictures, (A, B)).evalImgs if result]
    for label in (A, B):
        of_class = [result for result in results if result["category_id"] == label]
        wrong = [s for one in of_class for s, by in zip(one["dtScores"], one["dtMatches"][0], strict=True) if not by]
        scores = [error.score for error in errors if error.kind != "missed" and error.label == label]
        assert scores == sorted(wrong, reverse=True)
