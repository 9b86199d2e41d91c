"""The flow figure says what the run did, in shapes and in words."""

import xml.etree.ElementTree as ElementTree

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import vgpu
from course.kit.figures import Flow, cast, scatter_flow
from course.kit.figures.digits import draw_digit
from course.kit.figures.svg import Canvas
from course.kit.step_trace import trace_step

SVG = "{http://www.w3.org/2000/svg}"


def flow_of(rows, gpus, rows2=None):
    return Flow.from_rule(gpus, x1=rows) if rows2 is None else Flow.from_rule(gpus, x1=rows, x2=rows2)


class Pair(nn.Module):
    def forward(self, x1, x2):
        return x1, x2


@pytest.mark.parametrize(("gpus", "rows2"), [(2, 1), (4, 3), (8, 8), (8, 2), (3, 10)])
def test_the_rule_and_the_run_agree(gpus, rows2):
    x1, x2 = torch.arange(10.0).reshape(10, 1), torch.arange(float(rows2)).reshape(rows2, 1)
    with vgpu.virtual_gpus(gpus):
        dp = nn.DataParallel(Pair())
        with trace_step(dp) as trace:
            y1, _ = dp(x1, x2)
        run = Flow.from_trace(trace, gpus, x1=x1, x2=x2)
    assert scatter_flow(run).markup == scatter_flow(Flow.from_rule(gpus, x1=10, x2=rows2)).markup
    assert run.kept == len(y1)


def test_a_trace_of_two_steps_is_refused():
    x = torch.arange(4.0).reshape(4, 1)
    with vgpu.virtual_gpus(2):
        dp = nn.DataParallel(Pair())
        with trace_step(dp) as trace:
            dp(x, x)
            dp(x, x)
        with pytest.raises(ValueError, match="two calls on cuda:0"):
            Flow.from_trace(trace, 2, x1=x)


def test_the_post_in_words():
    figure = scatter_flow(flow_of(10, 2, 1))
    assert figure.title == "10 rows in, 5 out on 2 GPUs"
    assert figure.description == (
        "x1 is cut into chunks of 5 + 5; x2 is cut into chunks of 1. cuda:0 runs with rows 0-4; "
        "rows 5-9 are copied to cuda:1, whose replica is never called. 5 rows of 10 come back."
    )
    assert "5 rows lost, silently" in figure.markup
    assert "never called: no x2 left" in figure.markup


def test_idle_gpus_are_named():
    figure = scatter_flow(flow_of(10, 8))
    assert [f"cuda:{k} stays idle" in figure.description for k in range(8)] == [False] * 5 + [True] * 3
    assert "all came back" in figure.markup


@settings(deadline=None)
@given(st.integers(1, 32), st.integers(1, 8), st.integers(1, 12))
def test_every_state_is_well_formed_and_repeats_itself(rows, gpus, rows2):
    flow = flow_of(rows, gpus, rows2)
    figure = scatter_flow(flow)
    assert figure.markup == scatter_flow(flow).markup
    root = ElementTree.fromstring(figure.markup)
    width, height = float(root.get("width")), float(root.get("height"))
    for shape in root.iter(SVG + "rect"):
        assert 0 <= float(shape.get("x")) <= float(shape.get("x")) + float(shape.get("width")) <= width + 0.01
        assert 0 <= float(shape.get("y")) <= float(shape.get("y")) + float(shape.get("height")) <= height + 0.01
    assert f"{flow.kept} row" in figure.description


def test_one_hatch_per_lost_row():
    plain, lossy = (scatter_flow(flow_of(10, 2, n)).markup.count('stroke-width="1.2"') for n in (2, 1))
    assert (plain, lossy) == (0, 5)


@pytest.mark.parametrize(
    ("chunks", "received", "gpus", "message"),
    [
        ({}, [], 2, "`chunks` is empty"),
        ({"x1": [[0], [1], [2]]}, [[0]], 2, "more chunks than `gpus=2`"),
        ({"x1": [[0, 1], [2]]}, [[0, 2]], 2, "not one run"),
    ],
)
def test_states_that_no_run_can_have_are_refused(chunks, received, gpus, message):
    with pytest.raises(ValueError, match=message):
        Flow(chunks, received, gpus)


def test_cast_is_the_ten_digits():
    assert cast().shape == (10, 8, 8)
    assert cast().max() == 16
    with pytest.raises(ValueError, match="read-only"):
        cast()[0] = 0


def test_a_digit_must_be_eight_by_eight():
    with pytest.raises(ValueError, match=r"`face` has shape \(28, 28\)"):
        draw_digit(Canvas(10, 10, "t", "d"), [[0] * 28] * 28, 0, 0, 10)


def test_the_form_for_telephones_says_the_same_and_fits_its_screen():
    wide, narrow = scatter_flow(flow_of(10, 2, 1)), scatter_flow(flow_of(10, 2, 1), narrow=True)
    words = [
        [text.text for text in ElementTree.fromstring(figure.markup).iter(f"{SVG}text")] for figure in (wide, narrow)
    ]
    assert words[0] == words[1] and wide.description == narrow.description
    assert float(ElementTree.fromstring(narrow.markup).get("width")) <= 390
