"""The lanes say which device was current in which thread, whichever thread came first."""

import threading
import xml.etree.ElementTree as ElementTree

import pytest
import torch

import vgpu
from course.kit.figures import DeviceLog, Lane, device_lanes

EVENTS = ["starts", "inside"]


def logged(order):
    """Three threads, run one after the other in `order`, each inside the device of its number."""
    with vgpu.virtual_gpus(3):
        log = DeviceLog([f"worker {k}" for k in range(3)])

        def work(k):
            log.note(f"worker {k}", "starts", home=k)
            with torch.cuda.device(k):
                log.note(f"worker {k}", "inside", home=k)

        for k in order:
            thread = threading.Thread(target=work, args=(k,))
            thread.start()
            thread.join()
    return log.lanes


def test_lanes_are_as_the_threads_saw_it():
    assert logged([0, 1, 2]) == [Lane(f"worker {k}", k, {"starts": 0, "inside": k}) for k in range(3)]


def test_the_figure_does_not_depend_on_the_order_of_the_threads():
    one, other = (device_lanes(logged(order), EVENTS, "Threads").markup for order in ([0, 1, 2], [2, 0, 1]))
    assert one == other
    ElementTree.fromstring(one)


def test_a_device_that_is_not_the_lanes_own_is_hatched_and_said():
    figure = device_lanes([Lane("worker", 1, {"starts": 0, "inside": 1})], EVENTS, "Threads")
    assert figure.description == (
        "Current device. worker, weights on cuda:1: starts cuda:0 (not its own), inside cuda:1"
    )
    assert figure.markup.count("<path") == 1
    assert "<path" not in device_lanes([Lane("worker", None, {"starts": 0})], EVENTS, "Threads").markup


def test_what_is_drawn_may_be_where_tensors_lie():
    lanes = [Lane("replica 1", 1, {"weight": 1, "plain tensor": 0})]
    figure = device_lanes(lanes, ["weight", "plain tensor"], "Found", "Where a tensor lies", "hatched: stays behind")
    assert figure.description.startswith("Where a tensor lies. replica 1, weights on cuda:1: weight cuda:1, plain")
    assert "hatched: stays behind" in figure.markup and "hatched: current" not in figure.markup


def test_how_a_lane_ended_is_drawn_after_its_last_event_and_a_home_of_all_is_said_once():
    with vgpu.virtual_gpus(2):
        log = DeviceLog(["one", "other"])
        for name in ("one", "other"):
            log.note(name, "starts", home=1)
        log.end("one", "raises")
    figure = device_lanes(log.lanes, EVENTS, "Threads")
    assert figure.description == (
        "Current device. one, weights on cuda:1: starts cuda:0 (not its own), raises; "
        "other, weights on cuda:1: starts cuda:0 (not its own)"
    )
    assert figure.markup.count(">raises<") == 1 and ">one<" in figure.markup
    assert "the weights are (cuda:1)<" in figure.markup


def test_no_text_leaves_the_figure():
    """A letter of the caption takes less than 6.8, one of the title less than 9.4."""
    title = "A long title over a table that has one column only"
    figure = device_lanes([Lane("a", 1, {"starts": 0})], ["starts"], title)
    width = float(ElementTree.fromstring(figure.markup).get("viewBox").split()[2])
    assert width >= 16 + 9.4 * len(title)
    narrow = device_lanes([Lane("a", 1, {"starts": 0})], ["starts"], "Short", away="hatched: " + "a long caption " * 4)
    assert float(ElementTree.fromstring(narrow.markup).get("viewBox").split()[2]) >= 6.8 * 69


def test_a_lane_without_events_is_drawn_empty():
    assert "late: nothing noted" in device_lanes([Lane("late", None, {})], EVENTS, "Threads").description


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match="`name` is 'other'; this log has lanes for main"):
        DeviceLog(["main"]).note("other", "starts")
    with pytest.raises(ValueError, match="`name` is 'other'; this log has lanes for main"):
        DeviceLog(["main"]).end("other", "raises")
    with pytest.raises(ValueError, match="`events` lacks inside"):
        device_lanes([Lane("main", None, {"inside": 1})], ["starts"], "Threads")
    with pytest.raises(ValueError, match="0 lanes and 2 events"):
        device_lanes([], EVENTS, "Threads")
