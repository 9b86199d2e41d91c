"""The example of an exercise: one call and its result, drawn, without a trace of it in the reader's process."""

import pytest
import torch

import vgpu
from course.kit.figures.palette import CPU_COLOUR, gpu_colour
from course.kit.learn.by_key import find_exercise
from course.kit.learn.example import example


@pytest.fixture(autouse=True)
def gpus():
    with vgpu.virtual_gpus(2):
        yield


def test_a_tensor_is_a_box_in_the_colour_of_its_gpu():
    card = example(find_exercise("00.beside"))
    assert card.text == "For example: beside(<tensor (4, 4)>, <tensor (2,) on cuda:1>) → <tensor (4, 4) on cuda:1>"
    assert card.html.count(gpu_colour(1)) == 2 and card.html.count(CPU_COLOUR) == 1
    assert "<tensor" not in card.html and "(4, 4) cuda:1</span>" in card.html


def test_devices_are_written_as_people_write_them():
    assert "[cuda:0, cuda:1]" in example(find_exercise("02.scatter")).text


def test_the_reader_s_random_numbers_go_on_as_if_nothing_was_called():
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    example(find_exercise("36.accumulate"))
    assert torch.rand(2).equal(expected)
