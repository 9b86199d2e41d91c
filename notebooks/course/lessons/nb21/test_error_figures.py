"""The figures of notebook 21: the gallery of worst errors, a film of detections, and a ranked list of boxes."""

import base64
import xml.etree.ElementTree as ElementTree

import numpy as np
import torch

from course.kit.figures import filmstrip
from course.lessons.nb21.detection_errors import find_errors
from course.lessons.nb21.ranked_boxes import ranked_boxes
from course.lessons.nb21.worst_errors import worst_errors
from frcnn_lite.data import DigitScenes
from frcnn_lite.engine import Judged

SVG = "{http://www.w3.org/2000/svg}"


def elements(figure, name):
    return list(ElementTree.fromstring(figure.markup).iter(SVG + name))


def found_in(scenes, answer):
    rows = []
    for k in range(len(scenes)):
        scene = scenes[k]
        none = torch.zeros(len(scene.labels), dtype=torch.bool)
        rows.append(Judged(k, scene.boxes, scene.labels, none, none, *answer(scene)))
    return rows


def test_the_gallery_shows_confident_errors_and_keeps_room_for_missed_objects():
    scenes = DigitScenes("test", 6)
    rows = found_in(
        scenes, lambda s: (s.boxes[1:], torch.linspace(0.9, 0.5, len(s.boxes) - 1), (s.labels[1:] + 1) % 10)
    )
    errors = find_errors(rows)
    figure = worst_errors(errors, rows, scenes, most=6)
    pictures = elements(figure, "image")
    assert len(pictures) == 6 and all(base64.b64decode(node.get("href").split(",")[1]) for node in pictures)
    written = [node.text for node in elements(figure, "text")]
    kinds = [error.kind for error in errors]
    assert {"wrong class", "missed"} <= set(kinds) and written.count("missed") == 1 + 2  # the legend, and a third
    first = errors[0]
    true = int(scenes[first.picture].labels[first.object])
    assert (
        f"{first.label} at {first.score:.2f}, picture {first.picture}" in written
        and f"true {true}, IoU 1.00" in written
    )
    assert f"{kinds.count('missed')} missed" in figure.description
    assert figure == worst_errors(errors, rows, scenes, most=6)
    alone = worst_errors([error for error in errors if error.kind == "missed"], rows, scenes, most=4)
    assert [node.text for node in elements(alone, "text")].count("missed") == 1 + 4


def test_the_gallery_of_a_detector_without_errors_says_so():
    scenes = DigitScenes("test", 2)
    rows = found_in(scenes, lambda s: (s.boxes, torch.ones(len(s.boxes)), s.labels))
    assert find_errors(rows) == []
    assert worst_errors([], rows, scenes).description == "Errors: none."


def test_a_box_at_the_edge_of_a_large_picture_is_shown_whole_in_few_pixels():
    class Large:
        class_names = ("boat",)

        def __len__(self):
            return 1

        def __getitem__(self, index):
            return self

        image = torch.zeros(3, 600, 900, dtype=torch.uint8)

    none = torch.zeros(1, dtype=torch.bool)
    box = torch.tensor([[100.0, 20.0, 900.0, 600.0]])
    rows = [
        Judged(7, box, none.long(), none, none, torch.zeros(0, 4), torch.zeros(0), torch.zeros(0, dtype=torch.long))
    ]
    figure = worst_errors(find_errors(rows), rows, Large())
    assert "missed, boat, picture 7" in figure.description and len(figure.markup) < 200_000
    (shown,) = elements(figure, "image")
    left, top, width, height = (float(shown.get(name)) for name in ("x", "y", "width", "height"))
    for rect in elements(figure, "rect")[-2:]:
        x, y, w, h = (float(rect.get(name)) for name in ("x", "y", "width", "height"))
        assert left <= x and x + w <= left + width + 1 and top <= y and y + h <= top + height + 1


# ---- the same pictures again and again; a short ranked list


def test_a_filmstrip_draws_each_frame_over_the_same_pictures():
    picture = np.zeros((3, 20, 20), np.uint8)
    box = np.array([[2.0, 2, 12, 12]])
    nothing = (np.zeros((0, 4)), np.zeros(0), np.zeros(0, dtype=int))
    frames = {"step 0": ("AP 0.00", [nothing]), "step 9": ("AP 0.50", [(box, np.array([0.9]), np.array([7]))])}
    strips = [filmstrip([picture], frames, [(box, np.array([7]))], "A film", across=across) for across in (True, False)]
    for figure in strips:
        assert figure.description == (
            "step 0 AP 0.00: 0 right, 0 wrong, 1 missed. step 9 AP 0.50: 1 right, 0 wrong, 0 missed."
        )
        assert figure.markup.count("<image") == 2
    assert strips[0].markup != strips[1].markup
    unsure = filmstrip([picture], frames, [(box, np.array([7]))], "A film", min_score=0.95)
    assert "step 9 AP 0.50: 0 right, 0 wrong, 1 missed" in unsure.description


def test_ranked_boxes_say_box_by_box_what_was_found():
    figure = ranked_boxes([True, False, True], 4, "Three boxes")
    assert figure.description == (
        "2 of 4 objects found. Box by box: right, recall 0.25, precision 1.00; wrong, recall 0.25, precision 0.50; "
        "right, recall 0.50, precision 0.67."
    )
    assert "never reached" in figure.markup
    assert "never reached" not in ranked_boxes([True, True], 2, "All").markup
    assert ranked_boxes([], 2, "None").description.startswith("0 of 2 objects found")
