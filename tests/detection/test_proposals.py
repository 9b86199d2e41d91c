from dataclasses import replace

import torch

from frcnn_lite.detection.config import FasterRCNNConfig
from frcnn_lite.detection.proposal_targets import make_proposal_targets
from frcnn_lite.detection.proposals import Proposals, make_proposals
from frcnn_lite.detection.rpn import RPNOutput
from frcnn_lite.ops import box_iou, decode_boxes
from frcnn_lite.ops.proposals import first_kept


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
