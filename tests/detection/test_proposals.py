import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from frcnn_lite.detection.config import FasterRCNNConfig
from frcnn_lite.detection.proposal_targets import make_proposal_targets
from frcnn_lite.detection.proposals import MIN_SIDE, Proposals, first_kept, make_proposals
from frcnn_lite.detection.rpn import RPNOutput
from frcnn_lite.ops import box_iou, decode_boxes

SIZE = (110, 128)
DELTA_WEIGHTS = torch.tensor([1.0, 1.0, 0.5, 0.5])


def predictions(seed: int, levels: tuple[int, ...], spread: float, dtype: torch.dtype = torch.float32) -> RPNOutput:
    """Of three pictures; some anchors reach out of them, and some scores are equal."""
    generator = torch.Generator().manual_seed(seed)
    anchors = sum(levels)
    low = torch.rand(anchors, 2, generator=generator, dtype=dtype) * 150 - 20
    boxes = torch.cat([low, low + torch.rand(anchors, 2, generator=generator, dtype=dtype) * 40], dim=1)
    logits = torch.randint(-50, 50, (3, anchors), generator=generator).to(dtype)
    deltas = torch.randn(3, anchors, 4, generator=generator, dtype=dtype) * spread
    return RPNOutput(logits, deltas, boxes, levels)


def by_torchvision(rpn: RPNOutput, config: FasterRCNNConfig) -> list[Tensor]:
    """The proposals (K, 4) of each picture."""
    ops = pytest.importorskip("torchvision.ops")
    coder = pytest.importorskip("torchvision.models.detection._utils").BoxCoder(tuple(DELTA_WEIGHTS.tolist()))
    found = []
    for logits, deltas in zip(rpn.logits, rpn.deltas, strict=True):
        boxes = ops.clip_boxes_to_image(coder.decode_single(deltas, rpn.anchors), SIZE)
        start, best = 0, []
        for count in rpn.levels:
            order = logits[start : start + count].sort(descending=True, stable=True).indices
            best.append(order[: config.pre_nms_proposals] + start)
            start += count
        level = torch.cat([torch.full_like(chosen, k) for k, chosen in enumerate(best)])
        chosen = torch.cat(best)
        boxes, scores = boxes[chosen], logits[chosen].double()
        kept = ops.boxes._batched_nms_vanilla(boxes, scores, level, config.proposal_nms_iou)
        kept = kept[scores[kept].sort(descending=True, stable=True).indices]
        large = ops.remove_small_boxes(boxes[kept], MIN_SIDE)
        found.append(boxes[kept[large]][: config.proposals])
    return found


@pytest.mark.parametrize("levels", [(400,), (300, 93, 7)])
@pytest.mark.parametrize("spread", [0.05, 0.3, 3.0])
def test_proposals_are_torchvisions(levels, spread) -> None:
    for seed in range(5):
        rpn = predictions(seed, levels, spread, torch.float64)
        rpn = rpn._replace(logits=rpn.logits + torch.arange(400) / 1000)  # what torchvision does with ties is its own
        for candidates, threshold, size in ((200, 0.7, 48), (400, 0.5, 300), (20, 0.1, 30), (5, 1.0, 900)):
            config = FasterRCNNConfig(pre_nms_proposals=candidates, proposals=size, proposal_nms_iou=threshold)
            found = make_proposals(rpn, DELTA_WEIGHTS.double(), SIZE, config)
            for k, boxes in enumerate(by_torchvision(rpn, config)):
                torch.testing.assert_close(found.boxes[k][found.valid[k]], boxes, rtol=1e-9, atol=1e-9)
            assert found.boxes.shape[1] == min(size, sum(min(count, candidates) for count in levels))


def test_predictions_that_are_not_numbers_propose_nothing() -> None:
    rpn = predictions(0, (60,), 0.1)
    rpn.deltas[0, :, 0], rpn.deltas[1, ::2, 3] = math.nan, math.inf
    config = FasterRCNNConfig(pre_nms_proposals=60, proposals=20)
    valid = make_proposals(rpn, DELTA_WEIGHTS, SIZE, config).valid
    assert not valid[0].any() and valid[2].any()


def test_a_batch_is_its_pictures_one_by_one() -> None:
    rpn = predictions(1, (200,), 0.2)
    config = FasterRCNNConfig(pre_nms_proposals=100, proposals=25, proposal_nms_iou=0.6)
    boxes, valid = make_proposals(rpn, DELTA_WEIGHTS, SIZE, config)
    for k in range(3):
        one = rpn._replace(logits=rpn.logits[k : k + 1], deltas=rpn.deltas[k : k + 1])
        alone = make_proposals(one, DELTA_WEIGHTS, SIZE, config)
        assert torch.equal(alone.boxes[0], boxes[k]) and torch.equal(alone.valid[0], valid[k])


@pytest.mark.compiles
def test_a_trace_of_the_jit_and_a_compiled_call_of_any_size_keep_the_values() -> None:
    rpn = predictions(6, (60,), 0.1)
    config = FasterRCNNConfig(pre_nms_proposals=20, proposals=25)

    def propose(logits: Tensor, deltas: Tensor) -> tuple[Tensor, Tensor]:
        return tuple(make_proposals(rpn._replace(logits=logits, deltas=deltas), DELTA_WEIGHTS, SIZE, config))

    given = rpn.logits, rpn.deltas.requires_grad_()
    expected = propose(*given)
    traced = torch.jit.trace(propose, given, check_trace=False)
    for x in given:
        torch._dynamo.mark_dynamic(x, 0)  # refuses where the batch would become a constant
    compiled = torch.compile(propose, fullgraph=True, backend="eager")
    for found in (traced(*given), compiled(*given)):
        assert torch.equal(found[0], expected[0]) and torch.equal(found[1], expected[1])


def test_proposals_are_the_best_boxes_that_nms_keeps() -> None:
    anchors = torch.tensor([[0.0, 0, 10, 10], [1, 0, 11, 10], [30, 30, 50, 50], [90, 90, 130, 130]])
    logits = torch.tensor([[0.1, 0.9, 0.5, -1.0]])
    config = FasterRCNNConfig(pre_nms_proposals=4, proposals=4, proposal_nms_iou=0.5)
    arguments = RPNOutput(logits, torch.zeros(1, 4, 4), anchors, (4,)), torch.ones(4), (100, 120)
    proposals = make_proposals(*arguments, config)
    assert proposals.valid.tolist() == [[True, True, True, False]]
    assert proposals.boxes[0, :3].tolist() == [[1, 0, 11, 10], [30, 30, 50, 50], [90, 90, 120, 100]]
    fewer = make_proposals(*arguments, replace(config, pre_nms_proposals=2))
    assert fewer.valid.tolist() == [[True, True]]


def test_each_level_proposes_its_own_best_and_nms_keeps_to_the_level() -> None:
    anchors = torch.tensor([[0.0, 0, 10, 10], [20, 0, 30, 10], [40, 0, 50, 10], [1, 0, 11, 10], [60, 0, 70, 10]])
    logits = torch.tensor([[0.1, 0.9, 0.5, 0.7, -1.0]])
    rpn = RPNOutput(logits, torch.zeros(1, 5, 4), anchors, (3, 2))
    config = FasterRCNNConfig(pre_nms_proposals=3, proposals=5, proposal_nms_iou=0.5)
    boxes = make_proposals(rpn, torch.ones(4), (100, 120), config).boxes[0]
    assert boxes[:, 0].tolist() == [20, 1, 40, 0, 60]  # by score; 0 and 1 overlap, on two levels
    one_each = make_proposals(rpn, torch.ones(4), (100, 120), replace(config, pre_nms_proposals=1, proposals=2))
    assert one_each.boxes[0, :, 0].tolist() == [20, 1]


def test_a_proposal_that_clipping_leaves_without_area_is_dropped() -> None:
    rpn = RPNOutput(
        torch.tensor([[2.0, 1]]), torch.zeros(1, 2, 4), torch.tensor([[-20.0, 0, 0, 9], [0, 0, 9, 9]]), (2,)
    )
    config = FasterRCNNConfig(pre_nms_proposals=2, proposals=2)
    assert make_proposals(rpn, torch.ones(4), (30, 30), config).valid.tolist() == [[True, False]]


def test_first_kept_compacts_in_order() -> None:
    keep = torch.tensor([[False, True, False, True], [True, True, True, True]])
    positions = first_kept(keep, 3)
    assert positions[0, :2].tolist() == [1, 3] and positions[1].tolist() == [0, 1, 2]
    assert keep.gather(1, positions).tolist() == [[True, True, False], [True, True, True]]


def test_targets_are_the_boxes_and_classes_the_regions_overlap(model, truth) -> None:
    config, weights = model.config, model.box_head.delta_weights
    output = model.rpn(model.backbone(truth.images).rpn)
    proposals = make_proposals(output, model.rpn.delta_weights, (64, 48), config)
    targets = make_proposal_targets(proposals, truth.boxes, truth.labels, truth.seeds, weights, config)
    assert targets.rois.shape == (5, config.roi_samples, 4)
    assert targets.deltas.isfinite().all()
    for image in range(5):
        objects = truth.boxes[image][truth.labels[image] >= 0]
        positive = targets.box_weights[image] > 0
        assert torch.equal(positive, (targets.labels[image] < config.num_classes) & (targets.weights[image] > 0))
        assert int(positive.sum()) >= min(len(objects), 1)  # the ground truth itself is among the candidates
        if not len(objects):
            assert (targets.labels[image] == config.num_classes).all()
            continue
        best, index = box_iou(targets.rois[image], objects).max(dim=1)
        assert (best[positive] >= config.roi_positive_iou).all()
        reached = decode_boxes(targets.deltas[image], targets.rois[image], weights)
        torch.testing.assert_close(reached[positive], objects[index[positive]], rtol=1e-4, atol=1e-3)


def test_invalid_proposals_are_never_sampled(model) -> None:
    boxes = torch.tensor([[[0.0, 0, 20, 20]]])
    far = torch.tensor([[[40.0, 40, 60, 60]]]).repeat(1, 16, 1)
    proposals = Proposals(far, torch.zeros(1, 16, dtype=torch.bool))
    targets = make_proposal_targets(
        proposals, boxes, torch.tensor([[1]]), torch.tensor([0]), model.box_head.delta_weights, model.config
    )
    assert targets.weights.sum() == 1 and targets.box_weights.sum() == 1
