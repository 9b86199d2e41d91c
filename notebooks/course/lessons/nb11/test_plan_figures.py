"""Tiles of a tensor on GPUs, and plans against a GPU's memory."""

import pytest

from course.kit.figures.palette import GPU_COLOURS, KIND_COLOURS, gpu_colour
from course.lessons.nb11.plan_bars import LENGTH, Plan, gigabytes, plan_bars
from course.lessons.nb11.tensor_tiles import Tile, tensor_tiles

SQUARE = [[4 * row + column for column in range(4)] for row in range(4)]
PARTS = ("weights", "activations")


def rows_of(gpu):
    return Tile(SQUARE[gpu : gpu + 1], top=gpu)


def plan(weights, activations, sends=0.0, step=0.0):
    return Plan(dict(zip(PARTS, (weights, activations), strict=True)), sends=sends, step=step)


def test_every_tile_has_the_colour_of_its_gpu_and_the_numbers_it_holds():
    drawn = tensor_tiles({"Shard(0)": [rows_of(gpu) for gpu in range(4)]}, (4, 4), "four rows")
    for gpu in range(4):
        assert f'stroke="{gpu_colour(gpu)}"' in drawn.markup
        assert f"cuda:{gpu} holds row {gpu}, columns 0 to 3" in drawn.description
    assert all(f">{number}</text>" in drawn.markup for number in range(16))


def test_a_part_of_a_sum_is_drawn_and_told_as_one():
    parts = [Tile(SQUARE, partial=True)] * 2
    drawn = tensor_tiles({"Partial()": parts, "Replicate()": [Tile(SQUARE)] * 2}, (4, 4), "two kinds")
    assert drawn.markup.count(">+</text>") == 1 and drawn.markup.count("stroke-dasharray") == 2
    assert "cuda:1 holds a part of the sum for rows 0 to 3, columns 0 to 3" in drawn.description


@pytest.mark.parametrize("tiles", [[], [Tile(SQUARE, left=1)]])
def test_tiles_that_are_none_or_leave_the_tensor_are_refused(tiles):
    with pytest.raises(ValueError, match="tile"):
        tensor_tiles({"Shard(1)": tiles}, (4, 4), "wrong")


def test_plans_say_what_fits_and_how_long_a_step_takes():
    drawn = plan_bars({"DDP": plan(8e9, 4e9, 0.5, 0.5), "FSDP": plan(2e9, 4e9, 0.75, 1.25)}, 10e9, "two plans")
    assert "12.0 GB is too much; in seconds: a step 0.50, sending 0.50" in drawn.description
    assert "6.0 GB fits; in seconds: a step 1.25, sending 0.75" in drawn.description
    assert "too much" in drawn.markup and ">fits</text>" in drawn.markup and ">memory: 10.0 GB</text>" in drawn.markup


def test_plans_have_no_colour_of_a_gpu():
    markup = plan_bars({"DDP": plan(8e9, 4e9)}, 10e9, "one plan").markup
    assert not any(colour in markup for colour in GPU_COLOURS if colour not in ("#000000", *KIND_COLOURS))


def test_a_bar_that_is_far_too_long_is_cut_and_the_others_stay_readable():
    drawn = plan_bars({"huge": plan(900e9, 100e9), "small": plan(10e9, 0)}, 10e9, "cut")
    assert drawn.markup.count(">...</text>") == 1
    assert f'width="{LENGTH / 2.2:.2f}"'.rstrip("0") in drawn.markup  # a bar as long as the memory: 1 / CUT of all


@pytest.mark.parametrize(("plans", "memory"), [({}, 1e9), ({"DDP": plan(1, 1)}, 0)])
def test_plans_without_parts_or_memory_are_refused(plans, memory):
    with pytest.raises(ValueError, match="must"):
        plan_bars(plans, memory, "wrong")


def test_sizes_are_told_in_gigabytes_or_megabytes():
    assert [gigabytes(size) for size in (12.34e9, 1e8, 0.99e8, 0)] == ["12.3 GB", "0.1 GB", "99.0 MB", "0.0 MB"]
