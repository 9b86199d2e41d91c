"""Ours and torchvision's Faster R-CNN with the same weights: the same detections, the same losses."""

import copy
import dataclasses

import pytest
import torch
from torchvision_weights import from_torchvision, torchvision_config

from frcnn_lite.detection import FasterRCNN
from frcnn_lite.parallel import reduce_loss

pytest.importorskip("torchvision")

CLASSES, SIDE = 5, 192


@pytest.fixture(scope="module")
def theirs():
    """Random weights; those of the last layers large enough for scores that differ."""
    from torchvision.models.detection import FasterRCNN as TorchvisionFasterRCNN
    from torchvision.models.detection.backbone_utils import resnet_fpn_backbone

    torch.manual_seed(0)
    backbone = resnet_fpn_backbone(backbone_name="resnet18", weights=None, trainable_layers=5)
    model = TorchvisionFasterRCNN(
        *(backbone, CLASSES + 1),
        min_size=SIDE,
        max_size=SIDE,
        rpn_pre_nms_top_n_test=300,
        rpn_post_nms_top_n_test=100,
        rpn_pre_nms_top_n_train=300,
        rpn_post_nms_top_n_train=100,
        rpn_batch_size_per_image=10**6,
        rpn_positive_fraction=1.0,
        box_batch_size_per_image=10**4,
        box_positive_fraction=1.0,
    )
    torch.nn.init.normal_(model.rpn.head.cls_logits.weight, std=0.1)
    torch.nn.init.normal_(model.rpn.head.bbox_pred.weight, std=0.02)
    torch.nn.init.normal_(model.roi_heads.box_predictor.cls_score.weight, std=0.1)
    torch.nn.init.normal_(model.roi_heads.box_predictor.bbox_pred.weight, std=0.1)
    return model


@pytest.fixture(scope="module")
def ours(theirs):
    anchors = sum((SIDE // stride) ** 2 * 3 for stride in (4, 8, 16, 32, 64))
    config = torchvision_config(CLASSES, backbone="resnet18", pre_nms_proposals=300, proposals=100)
    # Sampling is disabled: every anchor and every proposal is a sample.
    sampling = {"rpn_samples": anchors, "rpn_positive_fraction": 1.0, "roi_samples": 104, "roi_positive_fraction": 1.0}
    model = FasterRCNN(dataclasses.replace(config, **sampling))
    model.load_state_dict(from_torchvision(theirs.state_dict()))
    return model


def pictures():
    generator = torch.Generator().manual_seed(1)
    images = torch.rand(2, 3, SIDE, SIDE, generator=generator)
    boxes = torch.tensor([[[20.0, 30, 90, 120], [100, 10, 180, 60]], [[50.0, 50, 130, 150], [0, 0, 0, 0]]])
    labels = torch.tensor([[0, 3], [4, -1]])
    return images, boxes, labels


def test_detections_are_the_same(ours, theirs):
    images, _, _ = pictures()
    with torch.no_grad():
        wanted = theirs.eval()(list(images))
        found = ours.eval()(images)
    for row, one in enumerate(wanted):
        valid = found.valid[row]
        assert len(one["scores"]) > 20
        torch.testing.assert_close(found.scores[row, valid], one["scores"], rtol=0, atol=1e-4)
        assert torch.equal(found.labels[row, valid], one["labels"] - 1)
        torch.testing.assert_close(found.boxes[row, valid], one["boxes"], rtol=1e-4, atol=1e-4 * SIDE)


def losses_of_both(ours, theirs, dtype):
    """Ours and theirs, by our names."""
    images, boxes, labels = pictures()
    images, boxes = images.to(dtype), boxes.to(dtype)
    targets = [
        {"boxes": rows[real], "labels": of_image[real] + 1}
        for rows, of_image, real in zip(boxes, labels, labels >= 0, strict=True)
    ]
    wanted = theirs.train()(list(images), targets)
    names = {
        "rpn_objectness": "loss_objectness",
        "rpn_box": "loss_rpn_box_reg",
        "head_class": "loss_classifier",
        "head_box": "loss_box_reg",
    }
    found = reduce_loss(*ours.train()(images, boxes, labels, torch.tensor([1, 2])))
    return found, {name: wanted[other] for name, other in names.items()}


def test_losses_are_the_same(ours, theirs):
    found, wanted = losses_of_both(ours, theirs, torch.float32)
    for name, value in wanted.items():
        torch.testing.assert_close(found[name], value, rtol=1e-4, atol=1e-6)


def test_gradients_are_the_same(ours, theirs):
    ours, theirs = copy.deepcopy(ours).double(), copy.deepcopy(theirs).double()
    for losses in losses_of_both(ours, theirs, torch.float64):
        torch.stack(list(losses.values())).sum().backward()
    theirs_by_name = from_torchvision({name: p.grad for name, p in theirs.named_parameters()})
    ours_by_name = dict(ours.named_parameters())
    assert len(ours_by_name) > 40
    for name, parameter in ours_by_name.items():
        largest = float(theirs_by_name[name].abs().max())
        torch.testing.assert_close(parameter.grad, theirs_by_name[name], rtol=1e-6, atol=1e-6 * largest)


def test_another_models_weights_are_refused():
    with pytest.raises(ValueError, match="`state` must be of torchvision's FasterRCNN, got one without"):
        from_torchvision({"conv1.weight": torch.zeros(1)})
