from typing import Any

import pytest
import torch
from torch import Tensor, nn

import vgpu
from frcnn_lite.parallel import chunk_sizes, trace_rows


class Pair(nn.Module):
    def forward(self, x1: Tensor, x2: Tensor, *, extra: Any = None) -> Tensor:
        return x1


@pytest.mark.parametrize("devices", [2, 3, 5, 8])
def test_shows_the_chunks_of_data_parallel(devices: int) -> None:
    x1, x2 = torch.randn(10, 4), torch.randn(10, 2)
    with vgpu.virtual_gpus(devices):
        parallel = nn.DataParallel(Pair(), device_ids=list(range(devices)))
        with trace_rows(parallel) as trace:
            parallel(x1.cuda(), x2.cuda())
        sizes = chunk_sizes(10, devices)
        assert [str(call.device) for call in trace.calls] == [f"cuda:{k}" for k in range(len(sizes))]
        assert [call.rows for call in trace.calls] == [{"x1": size, "x2": size} for size in sizes]
        found = trace.find_rows("x1", x1)
        assert [len(rows) for rows in found] == sizes and [row for rows in found for row in rows] == list(range(10))


def test_shows_the_rows_that_vanish() -> None:
    x1, x2 = torch.randn(10, 3, 4), torch.randn(1, 2)
    with vgpu.virtual_gpus(2):
        parallel = nn.DataParallel(Pair(), device_ids=[0, 1])
        with trace_rows(parallel) as trace:
            parallel(x1.cuda(), x2.cuda())
        assert trace.find_rows("x1", x1) == [[0, 1, 2, 3, 4]]
        assert trace.find_rows("x2", x2) == [[0]]


def test_rows_of_one_number() -> None:
    seeds = torch.tensor([5, 3, 8])
    module = Pair()
    with trace_rows(module) as trace:
        module(seeds[1:], seeds)
    assert trace.find_rows("x1", seeds) == [[1, 2]]


def test_a_plain_module_nested_arguments_and_keywords() -> None:
    module = Pair()
    with trace_rows(module) as trace:
        module(torch.zeros(3, 2), x2=torch.zeros(2), extra=[{"boxes": torch.zeros(4, 4)}, "text", torch.tensor(1.0)])
    module(torch.zeros(1), torch.zeros(1))  # no longer traced
    (call,) = trace.calls
    assert call.device == torch.device("cpu")
    assert call.rows == {"x1": 3, "x2": 2, "extra[0]['boxes']": 4}
    assert set(call.tensors) == {"x1", "x2", "extra[0]['boxes']", "extra[2]"}


def test_equal_rows_are_dealt_out_in_order_and_foreign_rows_are_minus_one() -> None:
    module = Pair()
    original = torch.tensor([[1.0], [1.0], [float("nan")], [2.0]])
    with trace_rows(module) as trace:
        module(original[:2], original)
        module(torch.tensor([[float("nan")], [1.0], [5.0]]), original)
    assert trace.find_rows("x1", original) == [[0, 1], [2, 0, -1]]


def test_an_unknown_argument_is_named() -> None:
    module = Pair()
    with trace_rows(module) as trace:
        module(torch.zeros(1), torch.zeros(1))
    with pytest.raises(KeyError, match="had no tensor 'x3', but \\['x1', 'x2'\\]"):
        trace.find_rows("x3", torch.zeros(1))


def test_a_call_that_fails_is_still_seen() -> None:
    module = Pair()
    with trace_rows(module) as trace, pytest.raises(TypeError):
        module(torch.zeros(2, 1))
    with trace_rows(module) as second, pytest.raises(TypeError):
        module(torch.zeros(2, 1), torch.zeros(1), torch.zeros(1), wrong=torch.zeros(1))
    assert trace.calls[0].rows == {"x1": 2}
    assert second.calls[0].rows == {"args[0]": 2, "args[1]": 1, "args[2]": 1, "wrong": 1}
