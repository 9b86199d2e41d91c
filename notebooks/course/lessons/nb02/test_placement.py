"""The placement figure says what the traced step did; the bars of row weights are in proportion."""

import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest
import torch
from torch import nn

import vgpu
from course.kit.figures import row_weights
from course.kit.step_trace import trace_step
from course.lessons.nb02.placement import Placement, placement


def a_net():
    """Two parameters and a buffer of 12 bytes."""
    net = nn.Sequential(nn.Linear(3, 4))
    net.register_buffer("mean", torch.ones(3))
    return net


def traced(gpus, rows, backward=True, output_device=0):
    x = torch.arange(3.0 * rows).view(rows, 3)
    with vgpu.virtual_gpus(gpus):
        dp = nn.DataParallel(a_net().cuda(), output_device=output_device)
        with trace_step(dp) as trace:
            y = dp(x)
            if backward:
                y.sum().backward()
        return Placement.from_trace(trace, input=x, output=y)


def test_a_step_as_it_was():
    step = traced(4, 10, output_device=2)
    bytes_of = {"0.weight": 48, "0.bias": 16, "mean": 12}
    assert [len(rows) for rows in step.rows] == [3, 3, 3, 1]
    assert list(step.held) == [bytes_of] * 4
    assert step.copied == [0, 76, 76, 76]
    assert [list(names) for names in step.gradients] == [[name for name in bytes_of if name != "mean"]] * 4
    assert step.sums == {name: 0 for name in bytes_of if name != "mean"}
    assert step.output == 2


def test_in_words_and_in_well_formed_markup():
    figure = placement(traced(2, 10))
    assert figure.description == (
        "cuda:0 runs rows 0-4 with all 3 tensors of the module, 76 bytes, 0 of them copied there, and computes 2 "
        "gradients; cuda:1 runs rows 5-9 with all 3 tensors of the module, 76 bytes, 76 of them copied there, and "
        "computes 2 gradients. The output is gathered on cuda:0; .grad: the sum of 2 gradients each, on cuda:0."
    )
    assert figure.markup == placement(traced(2, 10)).markup
    ElementTree.fromstring(figure.markup)


def test_without_backward_there_are_no_gradients_to_add():
    step = traced(2, 4, backward=False)
    assert step.sums == {} and not any(step.gradients)
    assert ".grad" not in placement(step).markup
    assert placement(replace(step, output=None)).description.endswith("gathered on the CPU.")


def test_what_is_not_a_step_is_refused():
    module = a_net()
    with trace_step(module) as trace:
        pass
    with pytest.raises(ValueError, match="holds no call"):
        Placement.from_trace(trace, x=torch.zeros(1, 3), output=torch.zeros(1))
    with pytest.raises(ValueError, match=r"one batch by name, such as x=x, got \[\]"):
        Placement.from_trace(trace, output=torch.zeros(1))


def test_bars_are_in_proportion():
    figure = row_weights([0.25, 0.5, 0.25], [0, 0, 1], "Weights")
    bars = [rect for rect in ElementTree.fromstring(figure.markup).iter() if rect.get("rx") == "3"]
    heights = [float(rect.get("height")) for rect in bars]
    assert heights == [85, 170, 85]
    assert figure.description.startswith("row 0 on cuda:0: 0.250; row 1 on cuda:0: 0.500")


@pytest.mark.parametrize(("weights", "gpus"), [([], []), ([0.5], [0, 1]), ([-0.1, 1.1], [0, 1])])
def test_bars_refuse_what_they_cannot_draw(weights, gpus):
    with pytest.raises(ValueError, match="want a weight of 0 or more"):
        row_weights(weights, gpus, "Weights")
