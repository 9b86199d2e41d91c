import xml.etree.ElementTree as ElementTree

import pytest

from course.lessons.nb07.step_lanes import step_lanes

SVG = "{http://www.w3.org/2000/svg}"
STEP = [
    ("forward", "loss"),
    ("backward", "2.weight"),
    ("sent", "bucket 0\n2.weight"),
    ("backward", "0.weight"),
    ("sent", "bucket 1\n0.weight"),
    ("step", "SGD"),
]


def shapes(figure, kind):
    return list(ElementTree.fromstring(figure.markup).iter(SVG + kind))


def places(figure):
    return {node.text: (float(node.get("x")), float(node.get("y"))) for node in shapes(figure, "text")}


def test_the_figure_says_what_happens_in_which_order():
    figure = step_lanes({"rank 0": STEP}, "A step", gpus=[0])
    assert figure.description == (
        "rank 0: forward loss, backward 2.weight, sent bucket 0 2.weight, backward 0.weight, sent bucket 1 0.weight, "
        "backward waits, step SGD."
    )
    assert figure.markup == step_lanes({"rank 0": STEP}, "A step", gpus=[0]).markup


def test_cells_stand_in_order_and_a_message_leaves_after_its_cell():
    at = places(step_lanes({"rank 0": STEP[:3] + STEP[3:]}, "A step"))
    assert at["loss"][0] < at["bucket 0"][0] < at["bucket 1"][0]
    assert at["loss"][1] == at["SGD"][1] < at["bucket 0"][1]
    assert at["forward"][0] < at["backward"][0] < at["step"][0]  # one heading for both cells of backward


def test_a_phase_that_ends_in_a_message_waits_for_it():
    at = places(step_lanes({"rank 0": STEP}, "A step"))
    assert at["0.weight"][0] < at["waits"][0] < at["SGD"][0]
    only = step_lanes({"rank 0": STEP[:5]}, "A step").description
    assert only.count("waits") == 1 and only.endswith("backward waits.")
    assert "waits" not in step_lanes({"rank 0": STEP[:4]}, "A step").description


def test_every_word_stays_inside():
    long = [("forward", "a very long name of a layer"), ("backward", "x"), ("sent", "everything\nat once")]
    figure = step_lanes({"rank 0, first": STEP, "rank 1": long}, "T", ends=["one ending", "a longer ending"])
    width, height = (float(ElementTree.fromstring(figure.markup).get(name)) for name in ("width", "height"))
    for node in shapes(figure, "text"):
        words, x, half = node.text, float(node.get("x")), 6.4 * len(node.text)
        low, high = (x - half / 2, x + half / 2) if node.get("text-anchor") == "middle" else (x, x + half)
        assert low >= 0 and high <= width, words
        assert 0 < float(node.get("y")) < height
    for node in shapes(figure, "rect"):
        assert float(node.get("x")) + float(node.get("width")) <= width


def test_lanes_without_messages_need_no_room_for_them():
    quiet = [event for event in STEP if event[0] != "sent"]
    tall, low = (step_lanes({"a": events}, "T") for events in (STEP, quiet))
    assert tall.markup != low.markup and len(shapes(low, "path")) == 0
    heights = [float(ElementTree.fromstring(figure.markup).get("height")) for figure in (tall, low)]
    assert heights[0] > heights[1]


def test_what_cannot_be_drawn_is_refused():
    for lanes in ({}, {"a": []}):
        with pytest.raises(ValueError, match="must each have an event"):
            step_lanes(lanes, "T")
    with pytest.raises(ValueError, match="'a' begins with a message"):
        step_lanes({"a": [("sent", "bucket 0")]}, "T")
    for wrong in ({"gpus": [0, 1]}, {"ends": []}):
        with pytest.raises(ValueError, match=r"one for each of 1 lanes"):
            step_lanes({"a": STEP}, "T", **wrong)
