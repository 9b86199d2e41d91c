"""Answers to the exercises of notebook 35: right ones in an unusual form, and wrong ones that are nearly right."""

import pytest
import torch
from answers import all_right, all_wrong

import vgpu

pytestmark = pytest.mark.virtual_gpus(1)


def with_events(weight, gradients, average, side):
    main = torch.cuda.current_stream()
    for gradient in gradients:
        weight -= 0.1 * gradient
        side.wait_event(main.record_event())
        with torch.cuda.stream(side):
            average.lerp_(weight, 0.5)
        main.wait_event(side.record_event())


def a_copy_of_the_weight(weight, gradients, average, side, recorded=True):
    main = torch.cuda.current_stream()
    for gradient in gradients:
        weight -= 0.1 * gradient
        copy = weight.clone()
        side.wait_stream(main)
        with torch.cuda.stream(side):
            average.lerp_(copy, 0.5)
        if recorded:
            copy.record_stream(side)
    main.wait_stream(side)


def a_copy_that_is_dropped(weight, gradients, average, side):
    a_copy_of_the_weight(weight, gradients, average, side, recorded=False)


def _batches(count, pinned=True):
    batches = [torch.full((4,), k + 1.0) for k in range(count)]
    return [batch.pin_memory() for batch in batches] if pinned else batches


def not_pinned(program):
    with vgpu.races():
        assert program(_batches(4, pinned=False), torch.cuda.Stream()).item() == 40


def collected(program):
    with vgpu.races(error=False) as found:
        number = program(_batches(5), torch.cuda.Stream()).item()
    assert not found and number == 60


def three_batches(program):
    with vgpu.races():
        torch.testing.assert_close(program(_batches(3), torch.cuda.Stream()).cpu(), torch.tensor(24.0))


def none_of_it(program):
    raise AssertionError


test_right = all_right(
    [
        ("35.average_beside", with_events),
        ("35.average_beside", a_copy_of_the_weight),
        ("35.check_total", not_pinned),
        ("35.check_total", collected),
        ("35.check_total", three_batches),
    ]
)
test_wrong = all_wrong([("35.average_beside", a_copy_that_is_dropped, None), ("35.check_total", none_of_it, None)])
