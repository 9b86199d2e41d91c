import torch

from frcnn_lite.detection.proposal_targets import make_proposal_targets
from frcnn_lite.detection.proposals import Proposals, first_kept, make_proposals
from frcnn_lite.ops import box_iou, decode_boxes


def test_proposals_are_the_best_boxes_that_nms_keeps() -> None:
    anchors = torch.tensor([[0.0, 0, 10, 10], [1, 0, 11, 10], [30, 30, 50, 50], [90, 90, 130, 130]])
    logits = torch.tensor([[0.1, 0.9, 0.5, -1.0]])
    arguments = {"before_nms": 4, "after_nms": 4, "iou_threshold": 0.5}
    proposals = make_proposals(logits, torch.zeros(1, 4, 4), anchors, torch.ones(4), (100, 120), **arguments)
    assert proposals.valid.tolist() == [[True, True, True, False]]
    assert proposals.boxes[0, :3].tolist() == [[1, 0, 11, 10], [30, 30, 50, 50], [90, 90, 120, 100]]
    fewer = make_proposals(
        logits, torch.zeros(1, 4, 4), anchors, torch.ones(4), (100, 120), **arguments | {"before_nms": 2}
    )
    assert fewer.valid.tolist() == [[True, True]]


def test_first_kept_compacts_in_order() -> None:
    boxes = torch.arange(8.0).view(2, 4, 1)
    rows, valid = first_kept(boxes, torch.tensor([[False, True, False, True], [True, True, True, True]]), 3)
    assert rows[0, :2, 0].tolist() == [1.0, 3.0] and rows[1, :, 0].tolist() == [4.0, 5.0, 6.0]
    assert valid.tolist() == [[True, True, False], [True, True, True]]


def test_targets_are_the_boxes_and_classes_the_regions_overlap(model, truth) -> None:
    config, weights = model.config, model.box_head.delta_weights
    output = model.rpn(model.backbone(truth.images).coarse)
    proposals = model._propose(output, (64, 48))
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
