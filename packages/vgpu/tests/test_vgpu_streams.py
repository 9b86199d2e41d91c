"""Streams that `torch.cuda._sleep` keeps busy, events, and the times between them."""

import pytest
import torch

from vgpu.base import errors
from vgpu.machine import streams

FOREVER = 10**15  # cycles: far longer than any test
MOMENT = int(streams._CLOCK / 50)  # 20 ms


@pytest.fixture
def timed(gpus):
    """Two events that measure time."""
    return torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)


def test_a_stream_that_sleeps_is_busy_and_no_other(gpus):
    with torch.cuda.device(1):
        torch.cuda._sleep(FOREVER)
        pending = torch.cuda.current_stream().record_event()
    assert not torch.cuda.current_stream(1).query() and not pending.query()
    assert torch.cuda.current_stream(0).query() and torch.cuda.Stream(device=1).query()
    assert torch.cuda.Event().query(), "an event that was never recorded has happened"


def test_streams_wait_for_streams_and_for_events(gpus):
    first, second, third = (torch.cuda.Stream() for _ in range(3))
    before = first.record_event()
    with torch.cuda.stream(first):
        torch.cuda._sleep(FOREVER)
    second.wait_event(before)
    assert second.query(), "the event came before the sleep"
    second.wait_stream(first)
    first.record_event().wait(third)
    assert not second.query() and not third.query() and torch.cuda.current_stream().query()


@pytest.mark.parametrize("wait", ["stream", "event", "torch.cuda", "torch.accelerator"])
def test_who_waits_for_a_stream_finds_it_free(gpus, wait):
    stream = torch.cuda.current_stream()
    torch.cuda._sleep(MOMENT)
    event = stream.record_event()
    ways = {"stream": stream, "event": event, "torch.cuda": torch.cuda, "torch.accelerator": torch.accelerator}
    ways[wait].synchronize()
    assert stream.query() and event.query()


def test_a_machine_that_is_switched_off_forgets_its_streams():
    import vgpu

    with vgpu.virtual_gpus(1, force=True):
        torch.cuda._sleep(FOREVER)
    with vgpu.virtual_gpus(1, force=True):
        torch.cuda.synchronize()
        assert torch.cuda.current_stream().query()


def test_elapsed_time_is_the_hosts_and_says_so(timed):
    start, end = timed
    start.record()
    torch.cuda._sleep(MOMENT)
    end.record()
    end.synchronize()
    errors.note.cache_clear()
    with pytest.warns(UserWarning, match="no times: this is how long the host took"):
        assert start.elapsed_time(end) >= 20


def test_times_that_cannot_be_told(timed):
    start, end = timed
    with pytest.raises(ValueError, match="enable_timing=True"):
        start.elapsed_time(torch.cuda.Event())
    with pytest.raises(ValueError, match="must be recorded before"):
        start.elapsed_time(end)
    start.record(torch.cuda.current_stream(1))
    end.record()
    with pytest.raises(RuntimeError, match="invalid resource handle"):
        start.elapsed_time(end)
    assert torch.cuda.current_device() == 0
    torch.cuda._sleep(FOREVER)
    end.record()
    with pytest.raises(RuntimeError, match="must be completed before"):
        start.elapsed_time(end)


def test_events_of_either_kind_have_a_handle_once_they_are_recorded(gpus):
    for event in (torch.cuda.Event(True), torch.Event("cuda", enable_timing=True), torch.Event()):
        assert event.event_id == 0 and "uninitialized" in repr(event)
        event.record()
        assert event.event_id != 0 and torch.device("cuda:0") == event.device


def test_a_stream_is_known_by_its_number_and_device(gpus):
    stream = torch.Stream("cuda:1")
    named = {"stream_id": stream.stream_id, "device_index": 1, "device_type": stream.device_type}
    assert torch.cuda.Stream(**named) == stream and torch.cuda.Stream(**{**named, "device_index": 2}) != stream
    assert stream.__cuda_stream__() == (0, stream.cuda_stream) and stream.native_handle == stream.cuda_stream
    assert torch.cuda.default_stream(1).cuda_stream == 0
    for wrong in (-2, 4, 128):
        with pytest.raises(RuntimeError, match=rf"Device index value {wrong} is out of index range \[0, 4\)"):
            torch.cuda.Stream(**{**named, "device_index": wrong})
