"""Post 000, Faster R-CNN on several GPUs (about 2017): the shapes and inputs of its three layers."""

import runpy
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy_layers
import pytest
import torch
from verdict import verdict

import vgpu
from frcnn_lite import ops
from frcnn_lite.detection.anchors import cell_anchors, grid_anchors

LAYERS = Path(__file__).resolve().parents[1] / "000_layers.py"
HEIGHT, WIDTH, STRIDE, A = 5, 7, 16, 3
ANCHORS = grid_anchors(cell_anchors((18.0, 26.0, 36.0), (1.4,)), HEIGHT, WIDTH, STRIDE).numpy()
RULE = numpy_layers.Rule(0.6, 0.3, 32, 0.5)
GT = np.array([[10.0, 20, 30, 45, 3], [60, 10, 90, 50, 7]], dtype=np.float32)
DRAWS = np.random.default_rng(0).random(200, dtype=np.float32)
NOTHING, IM_INFO = np.zeros((0, 4), np.float32), np.array([[80.0, 112.0, 1.0]])


@pytest.fixture(autouse=True)
def two_gpus() -> Iterator[None]:
    with vgpu.virtual_gpus(2):
        yield


def as_rows(labels: torch.Tensor) -> torch.Tensor:
    """A map (1, 1, A * H, W) as (H * W * A,), in the order of the anchors."""
    return labels.view(A, HEIGHT, WIDTH).permute(1, 2, 0).flatten()


def drawn_on_the_device() -> torch.Tensor:
    """The same sample, made by the library on cuda:1 for a batch of one picture."""
    anchors, boxes = (torch.from_numpy(x).to("cuda:1") for x in (ANCHORS, GT[None, :, :4]))
    real, keys = torch.ones(1, 2, dtype=torch.bool).to("cuda:1"), torch.from_numpy(DRAWS[None, : len(ANCHORS)]).cuda(1)
    matched = ops.match(ops.box_iou(boxes, anchors), real, 0.6, 0.3, allow_low_quality=True)
    drawn = ops.sample(matched, keys, 32, 0.5)
    chosen = drawn.indices[drawn.weights > 0]
    labels = torch.full((len(ANCHORS),), -1).to("cuda:1")
    labels[chosen] = (matched[0, chosen] >= 0).long()
    return labels


def printed(name: str) -> Callable[..., tuple[torch.Tensor, ...]]:
    """A layer as the post prints it, around NumPy functions in the manner of py-faster-rcnn."""
    def anchor_target_layer_py(score, gt_boxes, gt_ishard, dontcare_areas, im_info, feat_stride, anchor_scales):
        truth = (gt_boxes, gt_ishard, dontcare_areas)
        return numpy_layers.anchor_target_layer(ANCHORS, score.shape[2:], *truth, DRAWS[: len(ANCHORS)], RULE)

    def proposal_target_layer_py(rois, gt_boxes, gt_ishard, dontcare_areas, classes):
        truth = (gt_boxes, gt_ishard, dontcare_areas)
        return numpy_layers.proposal_target_layer(rois, *truth, classes, DRAWS[: len(rois) + len(gt_boxes)], RULE)

    names = {"anchor_target_layer_py": anchor_target_layer_py, "proposal_target_layer_py": proposal_target_layer_py}
    return runpy.run_path(str(LAYERS), names)[name]


@verdict(
    "000",
    "anchor_target_layer and proposal_target_layer, after the change",
    claim="What NumPy returns goes back to the GPU that the scores came from, in the shapes of the docstrings.",
    ruling="right",
    because="Run on cuda:1 while cuda:0 is current: every tensor is back on cuda:1, labels as int64. A batch on the "
    "device gives the same samples without the way there and back.",
    notebook="13_anchors_and_targets",
    words="sends four arrays back",
)
def test_targets_return_to_their_gpu() -> None:
    score = torch.zeros(1, 2 * A, HEIGHT, WIDTH, device="cuda:1")
    easy = np.zeros((2, 1), dtype=bool)
    with vgpu.trace() as trace:
        labels, *maps = printed("anchor_target_layer")(score, GT, easy, NOTHING, IM_INFO, [STRIDE], [18, 26, 36])
    assert len(trace.copies()) == 5  # one to the CPU, and four arrays back
    assert torch.equal(as_rows(labels), drawn_on_the_device())
    assert labels.shape == (1, 1, A * HEIGHT, WIDTH) and labels.dtype == torch.int64
    assert [tuple(x.shape) for x in maps] == [(1, 4 * A, HEIGHT, WIDTH)] * 3
    rois = torch.tensor([[0.0, 12, 22, 32, 44], [0, 0, 0, 20, 20]], device="cuda:1")
    head = printed("proposal_target_layer")(rois, GT, easy, NOTHING, 11)
    assert [x.shape[1] for x in head] == [5, 1, 44, 44, 44] and (head[0][:, 0] == 0).all()
    assert {x.get_device() for x in (labels, *maps, *head)} == {1}
    assert torch.cuda.current_device() == 0


@verdict(
    "000",
    "anchor_target_layer, `gt_ishard` and `dontcare_areas`",
    claim="Objects may be marked as difficult, and areas as not labelled; D may be 0.",
    ruling="right",
    because="Neither is trained on: a difficult object has no positive anchor, an area no sample that lies in it. "
    "With no areas the result is that without the argument. Today's detectors mostly dropped both.",
    notebook="13_anchors_and_targets",
    words="the areas where nobody has looked",
)
def test_hard_objects_and_areas_are_left_out() -> None:
    score, layer = torch.zeros(1, 2 * A, HEIGHT, WIDTH, device="cuda:1"), printed("anchor_target_layer")
    rest = (IM_INFO, [STRIDE], [18, 26, 36])
    easy, hard = np.zeros((2, 1), dtype=bool), np.array([[True], [False]])
    inside = numpy_layers.box_iou(ANCHORS, GT[:, :4])

    def positives(labels: torch.Tensor) -> np.ndarray:
        return labels.cpu().view(A, HEIGHT, WIDTH).permute(1, 2, 0).flatten().numpy() == 1

    both = positives(layer(score, GT, easy, NOTHING, *rest)[0])
    assert (inside[both] >= 0.3).any(axis=0).all()  # each object has an anchor
    one = positives(layer(score, GT, hard, NOTHING, *rest)[0])
    assert one.any() and (inside[one].argmax(axis=1) == 1).all()
    area = np.array([[0.0, 0, 112, 80]], dtype=np.float32)
    everything = layer(score, GT, easy, area, *rest)[0]
    kept = everything.cpu().view(A, HEIGHT, WIDTH).permute(1, 2, 0).flatten().numpy() >= 0
    assert not (kept & numpy_layers.in_dontcare(ANCHORS, area)).any()
