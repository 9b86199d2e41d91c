"""NMS from boxes, at once and as the operator that a recorded graph holds."""

import pytest
import torch
from torch import Tensor

from frcnn_lite.detection.suppress import suppress


@pytest.fixture
def crowd() -> tuple[Tensor, Tensor, Tensor]:
    draw = torch.Generator().manual_seed(0)
    corner = torch.rand(2, 80, 2, generator=draw) * 60
    boxes = torch.cat([corner, corner + torch.rand(2, 80, 2, generator=draw) * 40 + 10], dim=2)
    return boxes, torch.rand(2, 80, generator=draw), torch.randint(0, 3, (2, 80), generator=draw)


@pytest.mark.parametrize("with_classes", [False, True])
def test_boxes_are_those_that_torchvision_keeps(crowd, with_classes) -> None:
    ops = pytest.importorskip("torchvision.ops")
    boxes, scores, classes = crowd
    found = suppress(boxes, scores, 0.5, classes if with_classes else None)
    for k in range(2):
        groups = classes[k] if with_classes else torch.zeros(80, dtype=torch.int64)
        assert found[k].nonzero()[:, 0].tolist() == sorted(ops.batched_nms(boxes[k], scores[k], groups, 0.5).tolist())


@pytest.mark.compiles
def test_a_graph_holds_one_node_that_gives_the_same(crowd) -> None:
    boxes, scores, classes = crowd
    nodes = []

    def backend(graph: torch.fx.GraphModule, _: list[Tensor]):
        nodes.extend(str(node.target) for node in graph.graph.nodes if node.op == "call_function")
        return graph

    compiled = torch.compile(suppress, fullgraph=True, backend=backend)
    assert torch.equal(compiled(boxes, scores, 0.5, classes), suppress(boxes, scores, 0.5, classes))
    assert nodes == ["frcnn_lite.nms_mask"]
    torch._dynamo.reset()


def test_the_operator_keeps_the_promises_it_registers(crowd) -> None:
    boxes, scores, classes = crowd
    for groups in (None, classes):
        torch.library.opcheck(torch.ops.frcnn_lite.nms_mask.default, (boxes, scores, 0.5, groups))
