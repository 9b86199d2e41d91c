"""The figures of notebook 17: threads and their outputs, numbers and their addresses."""

import xml.etree.ElementTree as ElementTree

import pytest
import torch

from course.lessons.nb17.thread_map import memory_order, thread_map

SVG = "{http://www.w3.org/2000/svg}"


def texts(figure):
    return [node.text for node in ElementTree.fromstring(figure.markup).iter(SVG + "text")]


def test_threads_are_numbered_as_the_outputs_lie_in_memory():
    figure = thread_map((2, 3, 2, 4), "Threads")
    assert [int(text) for text in texts(figure) if text.isdigit()] == list(range(48))
    assert "region 1, channel 2: threads 40 to 47" in figure.description


def test_numbers_stand_in_the_order_of_memory():
    plain = torch.arange(12.0).view(1, 3, 2, 2)
    figure = memory_order({"a": plain, "b": plain.contiguous(memory_format=torch.channels_last)}, "Memory")
    assert "b: 0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11." in figure.description
    numbers = [int(text) for text in texts(figure) if text.isdigit()]
    assert numbers == [*range(12), *range(12), 0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]


@pytest.mark.parametrize("shape", [(0, 1, 1, 1), (1, 7, 1, 1)])
def test_outputs_that_cannot_be_drawn(shape):
    with pytest.raises(ValueError, match=r"`shape` must be of 1 or more|there are colours for 6 channels"):
        thread_map(shape, "Nothing")


@pytest.mark.parametrize(
    "tensor", [torch.zeros(1, 0, 2, 2), torch.zeros(1, 2, 2, 4)[..., ::2], torch.zeros(2, 1, 2, 2)]
)
def test_tensors_that_are_not_dense_or_not_one_image(tensor):
    with pytest.raises(ValueError, match="`tensors` must be dense"):
        memory_order({"x": tensor}, "Nothing")
