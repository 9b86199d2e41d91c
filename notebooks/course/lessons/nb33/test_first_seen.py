"""The board of notebook 33."""

from course.lessons.nb33.first_seen import ending, first_seen


def test_tells_an_error_from_a_wrong_result():
    assert [ending(call, 2, ["cuda:0"]).kind for call in (lambda _: 2, len, lambda _: 1 / 0)] == [
        "right",
        "wrong",
        "raises",
    ]


def test_calls_each_mistake_on_no_gpu_on_one_and_on_two():
    calls = []
    figure = first_seen({"nothing": (lambda gpus: calls.append(len(gpus)), None)}, ["cuda:0", "cuda:1", "cuda:2"])
    assert calls == [0, 1, 2]
    assert "nothing" in repr(figure)
