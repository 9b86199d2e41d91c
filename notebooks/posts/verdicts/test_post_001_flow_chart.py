"""Post 001, notes on simple-faster-rcnn-pytorch: the flow chart that it announces, drawn from a run."""

import torch
from verdict import verdict

from course.kit import figures
from course.lessons.nb12.tensor_flow import tensor_flow
from course.lessons.nb12.call_trace import trace_calls
from frcnn_lite import parallel
from frcnn_lite.detection import FasterRCNN, FasterRCNNConfig
from frcnn_lite.detection.box_head import BoxHead
from frcnn_lite.detection.proposal_targets import make_proposal_targets
from frcnn_lite.detection.proposals import make_proposals
from frcnn_lite.detection.rpn import RegionProposalNetwork


@verdict(
    "001",
    "Faster R-CNN flow chart",
    claim="A chart of the model, in more detail than the paper's.",
    ruling="incomplete",
    because="The text announces it and ends; the picture is not part of it. A chart drawn from a run has every stage with the "
    "shapes of what it makes and its GPU, and cannot go stale.",
    notebook="12_a_detector_in_one_page",
    words="tensor_flow",
)
def test_the_chart_is_drawn_from_a_run():
    model = FasterRCNN(FasterRCNNConfig(widths=(8, 8, 16), roi_channels=8, head_width=16))
    stages = {
        "backbone": type(model.backbone).forward,
        "rpn": RegionProposalNetwork.forward,
        "make_proposals": make_proposals,
        "make_proposal_targets": make_proposal_targets,
        "box_head": BoxHead.forward,
        "reduce_loss": parallel.reduce_loss,
    }
    images, boxes = torch.rand(2, 3, 64, 64), torch.tensor([[8.0, 8, 40, 40]]).expand(2, 1, 4)
    with trace_calls(FasterRCNN.forward, stages, {"box_head": ("logits", "deltas")}) as trace:
        parallel.reduce_loss(*model(images, boxes, torch.zeros(2, 1, dtype=torch.int64), torch.arange(2)))
    (run,) = trace.stages.values()
    assert [stage.name for stage in run] == ["given", *stages]
    shapes = {(stage.name, tensor.name): tensor.shape for stage in run for tensor in stage.gives}
    assert shapes["rpn", "deltas"] == (2, 8 * 8 * 3, 4)
    assert shapes["box_head", "logits"] == (2, 32, 11)
    chart = tensor_flow(run, "From picture to loss")
    assert "deltas 2×192×4 float32 on cpu" in chart.description
