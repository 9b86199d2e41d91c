"""The figure of notebook 35: when the host gives work to the streams of a GPU, and when the GPU does it."""

import pytest
import torch

from course.lessons.nb35.launches import HOST_WAITS, LAUNCH, STREAM_WAITS, launches
from course.lessons.nb35.queue_lanes import Box, queue_lanes, schedule

pytestmark = pytest.mark.virtual_gpus(1)


def copied_and_added(wait):
    side, main, rows = torch.cuda.Stream(), torch.cuda.current_stream(), torch.ones(4).pin_memory()
    with launches() as given:
        with torch.cuda.stream(side):
            batch = rows.to("cuda", non_blocking=True)
        if wait:
            main.wait_stream(side)
        batch[:2].sum().item()
    return given


def test_kernels_waits_and_items_are_noted_and_views_are_not():
    assert [step.what for step in copied_and_added(True)] == [LAUNCH, STREAM_WAITS, LAUNCH, HOST_WAITS]
    assert [step.name for step in copied_and_added(False)] == ["_to_copy", "sum", "item"]


def test_wait_stream_is_put_back_and_has_waited():
    before = torch.cuda.Stream.wait_stream
    copied_and_added(True)
    assert torch.cuda.Stream.wait_stream is before


@pytest.mark.parametrize(("wait", "start"), [(False, 2), (True, 5)])
def test_a_kernel_begins_when_what_its_stream_waits_for_has_ended(wait, start):
    boxes, waits = schedule(copied_and_added(wait))
    assert Box("default stream", 2, "sum", start, start + 4) in boxes
    assert Box("host", 0, "item waits", 2, start + 4) in boxes
    assert len(waits) == wait


def test_a_kernel_that_fails_and_those_behind_it_are_told():
    with launches() as given:
        (torch.ones(3, device="cuda") * 2).sum()
    described = queue_lanes({"": given}, "A step", failed="mul").description
    assert "2 mul from 5 to 9 fails, 3 sum from 9 to 13 and does not run" in described
    assert "1 ones from 1 to 5, " in described


@pytest.mark.parametrize(
    ("programs", "failed", "words"),
    [({"nothing": []}, "", "'nothing' does not"), ({"": None}, "exp", "`failed` must be one of .*, got 'exp'")],
)
def test_what_cannot_be_drawn_is_said(programs, failed, words):
    with launches() as given:
        torch.ones(3, device="cuda")
    with pytest.raises(ValueError, match=words):
        queue_lanes({name: given if steps is None else steps for name, steps in programs.items()}, "A step", failed)
