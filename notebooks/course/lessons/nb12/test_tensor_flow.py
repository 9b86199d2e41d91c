"""The flow chart and the trace it is drawn from."""

from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn

import vgpu
from course.lessons.nb12.call_trace import SeenTensor, Stage, trace_calls
from course.lessons.nb12.tensor_flow import tensor_flow


class Maps(NamedTuple):
    coarse: Tensor
    levels: tuple[Tensor, ...]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def forward(self, x: Tensor, labels: Tensor) -> dict[str, Tensor]:
        maps = self.body(x)
        score, place = head(maps, self.fc.weight)
        return losses(score, place, labels)

    def body(self, x: Tensor) -> Maps:
        y = self.fc(x)
        return Maps(y, (y * 2, y * 3))


@torch.no_grad()
def head(maps: Maps, weight: Tensor) -> tuple[Tensor, Tensor]:
    return maps.coarse.sum(dim=1), maps.levels[1].long()


def losses(score: Tensor, place: Tensor, labels: Tensor) -> dict[str, Tensor]:
    count = labels.sum()
    return {"sum": score.sum(), "count": count, "also the count": count}


STAGES, NAMES = {"body": Net.body, "head": head, "losses": losses}, {"head": ("score", "place")}


def test_stages_with_their_tensors():
    with trace_calls(Net.forward, STAGES, NAMES) as trace:
        Net()(torch.ones(4, 3), torch.ones(4, dtype=torch.int64))
    (stages,) = trace.stages.values()
    assert [(stage.name, stage.takes) for stage in stages] == [
        ("given", ()),
        ("body", (1,)),
        ("head", (3, 4, 5)),  # its weight is no tensor of the flow
        ("losses", (6, 7, 2)),
    ]
    told = [(t.number, t.name, t.shape, t.dtype) for stage in stages for t in stage.gives]
    assert told == [
        (1, "x", (4, 3), "float32"),
        (2, "labels", (4,), "int64"),
        (3, "coarse", (4, 2), "float32"),
        (4, "levels[0]", (4, 2), "float32"),
        (5, "levels[1]", (4, 2), "float32"),
        (6, "score", (4,), "float32"),
        (7, "place", (4, 2), "int64"),
        (8, "sum", (), "float32"),
        (9, "count", (), "int64"),
    ]


def test_replicas_have_flows_of_their_own():
    with vgpu.virtual_gpus(2) as gpus, trace_calls(Net.forward, STAGES, NAMES) as trace:
        nn.DataParallel(Gathers().cuda())(torch.ones(3, 3), torch.ones(3, dtype=torch.int64))
    rows = {str(gpu): [t.shape[0] for t in trace.stages[gpu][1].gives] for gpu in gpus}
    assert rows == {"cuda:0": [2, 2, 2], "cuda:1": [1, 1, 1]}
    for gpu in gpus:
        assert [t.number for stage in trace.stages[gpu] for t in stage.gives] == [*range(1, 10)]
        assert {t.device for stage in trace.stages[gpu] for t in stage.gives} == {gpu}


class Gathers(Net):
    def forward(self, x: Tensor, labels: Tensor) -> Tensor:
        return Net.forward(self, x, labels)["sum"].view(1)


def test_nothing_is_recorded_after_the_block():
    with trace_calls(Net.forward, STAGES, NAMES) as trace:
        pass
    Net()(torch.ones(4, 3), torch.ones(4, dtype=torch.int64))
    assert trace.stages == {}


def test_the_chart_names_every_tensor_and_links_every_stage():
    with trace_calls(Net.forward, STAGES, NAMES) as trace:
        Net()(torch.ones(4, 3), torch.ones(4, dtype=torch.int64))
    (stages,) = trace.stages.values()
    figure = tensor_flow(stages, "Flow")
    assert (
        "head takes coarse, levels[0], levels[1] and gives score 4 float32 on cpu, place 4×2 int64 on cpu"
        in figure.description
    )
    for words in ("coarse 4×2 · levels[0] 4×2 · levels[1] 4×2", "sum one number · count one number", "cpu"):
        assert f">{words}</text>" in figure.markup
    assert figure.markup.count(' fill="none"') == 4  # given to body and losses, body to head, head to losses
    with pytest.raises(ValueError, match="`stages` is empty"):
        tensor_flow([], "Flow")


def test_a_stage_has_a_dot_for_each_device_of_what_it_made():
    with vgpu.virtual_gpus(2) as gpus:
        seen = [SeenTensor(k + 1, "x", (2,), "float32", gpu) for k, gpu in enumerate(gpus)]
        figure = tensor_flow([Stage("given", (), tuple(seen)), Stage("half", (1,), (seen[1],))], "Flow")
    assert figure.markup.count("<circle") == 2 + 1 + 2  # two stages, and the legend
