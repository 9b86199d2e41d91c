"""The heat map of idle GPUs writes every count, and names the batch sizes that waste GPUs."""

import xml.etree.ElementTree as ElementTree

import pytest

from course.lessons.nb01.idle_heatmap import idle_heatmap

SVG = "{http://www.w3.org/2000/svg}"


def texts(figure):
    return [node.text for node in ElementTree.fromstring(figure.markup).iter(SVG + "text")]


def test_heatmap_writes_every_count():
    idle = [[0, 0, 0], [1, 0, 0], [2, 1, 0], [3, 2, 1]]
    figure = idle_heatmap(idle)
    counts = [text for text in texts(figure) if text.isdigit()]
    assert sorted(counts) == ["1"] * 4 + ["2"] * 2 + ["3"]  # the last one is the label of the axis
    assert "No GPU stays idle once" in figure.description


def test_heatmap_names_the_wasteful_batch_sizes():
    idle = [[g - -(-n // -(-n // g)) for n in range(1, 13)] for g in range(1, 5)]
    assert "with 3 GPUs one or more idle at 4 rows, although that is enough rows" in idle_heatmap(idle).description
    assert (
        "with 4 GPUs one or more idle at 5, 6, 9 rows, although that is enough rows" in idle_heatmap(idle).description
    )


def test_heatmap_refuses_a_ragged_table():
    with pytest.raises(ValueError, match="lines of one length"):
        idle_heatmap([[0, 0], [1]])
