"""The promises of the model: static shapes, no host syncs, and a loss per image that depends on that image alone."""

import copy

import pytest
import torch
from op_counter import READS_BACK, OpCounter

from frcnn_lite.detection import Detections, FasterRCNN, FasterRCNNConfig, LossParts
from frcnn_lite.ops import box_iou
from frcnn_lite.parallel import reduce_loss

NAMES = ["rpn_objectness", "rpn_box", "head_class", "head_box"]


def train_step(model: FasterRCNN, batch) -> dict[str, torch.Tensor]:
    losses = reduce_loss(*model(*batch))
    torch.stack(list(losses.values())).sum().backward()
    return losses


def rows(batch, chosen: slice):
    return type(batch)(*(tensor[chosen] for tensor in batch))


def test_parts_are_sums_and_counts_per_image(model, truth) -> None:
    parts = model(*truth)
    assert isinstance(parts, LossParts)
    assert list(parts.sums) == list(parts.counts) == NAMES
    assert all(part.shape == (5,) and part.isfinite().all() for part in (*parts.sums.values(), *parts.counts.values()))


def test_every_parameter_receives_a_gradient(model, truth) -> None:
    train_step(model, truth)
    missing = [name for name, parameter in model.named_parameters() if parameter.grad is None]
    assert missing == []
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


def test_an_image_contributes_the_same_whatever_batch_it_stands_in(model, truth64) -> None:
    model = model.double()
    together = model(*truth64)
    for image in range(5):
        alone = model(*rows(truth64, slice(image, image + 1)))
        for name in NAMES:
            torch.testing.assert_close(alone.sums[name][0], together.sums[name][image], rtol=1e-10, atol=1e-10)
            assert alone.counts[name][0] == together.counts[name][image]


def test_gradients_of_uneven_chunks_add_up_to_those_of_the_batch(model, truth64) -> None:
    whole, parts = model.double(), copy.deepcopy(model).double()
    train_step(whole, truth64)
    chunks = [parts(*rows(truth64, chosen)) for chosen in (slice(0, 3), slice(3, 5))]
    gathered = LossParts(*({n: torch.cat([c[i][n] for c in chunks]) for n in NAMES} for i in (0, 1)))
    sum(reduce_loss(*gathered).values()).backward()
    for expected, got in zip(whole.parameters(), parts.parameters(), strict=True):
        torch.testing.assert_close(got.grad, expected.grad, rtol=1e-10, atol=1e-10)


def test_detections_do_not_depend_on_the_batch_either(model, truth64) -> None:
    model = model.double().eval()
    together = model(truth64.images)
    alone = [model(image[None]) for image in truth64.images]
    for field, values in zip(Detections._fields, together, strict=True):
        torch.testing.assert_close(torch.cat([getattr(one, field) for one in alone]), values, rtol=1e-10, atol=1e-10)


def test_images_without_objects_have_zero_box_loss_that_depends_on_parameters(model, truth) -> None:
    empty = rows(truth, slice(0, 1))
    assert (empty.labels == -1).all()
    losses = train_step(model, empty)
    assert losses["rpn_box"].item() == losses["head_box"].item() == 0.0
    assert losses["rpn_objectness"] > 0 and losses["head_class"] > 0
    regress = model.box_head.regress.weight.grad
    assert regress is not None and not regress.any()


def test_padding_rows_change_nothing(model, truth) -> None:
    more = truth._replace(
        boxes=torch.nn.functional.pad(truth.boxes, (0, 0, 0, 3)),
        labels=torch.nn.functional.pad(truth.labels, (0, 3), value=-1),
    )
    # The random keys of the proposals do not move, as padding is appended.
    for name, value in model(*more).sums.items():
        torch.testing.assert_close(value, model(*truth).sums[name], rtol=1e-5, atol=1e-6)


def test_seeds_decide_the_samples(model, truth) -> None:
    again, other = model(*truth), model(*truth._replace(seeds=truth.seeds + 1))
    assert torch.equal(model(*truth).sums["rpn_objectness"], again.sums["rpn_objectness"])
    assert not torch.equal(other.sums["rpn_objectness"], again.sums["rpn_objectness"])


def test_a_step_reads_back_once_a_round_of_nms_and_its_op_count_does_not_depend_on_the_batch(model, truth) -> None:
    counted = []
    for chosen in (slice(0, 1), slice(1, 2), slice(0, 5)):
        model.zero_grad(set_to_none=True)
        with OpCounter() as counter:
            train_step(model, rows(truth, chosen))
        counted.append(without_rounds(counter.ops))
    assert counted[0] == counted[1] == counted[2]
    with OpCounter() as counter:
        model(truth.images)
    without_rounds(counter.ops)


def without_rounds(ops: list[str]) -> int:
    """How many operators there are but for the rounds of NMS, whose number depends on the data; nothing else asks the
    device."""
    asked = [op for op in ops if any(word in op for word in READS_BACK)]
    assert set(asked) == {"aten.equal.default"} and len(asked) < 20
    first = ops.index("aten.equal.default")
    one_round = first - max(k for k in range(first) if ops[k] == "aten.baddbmm.default") + 1
    return len(ops) - one_round * len(asked)


def test_detections_are_sorted_valid_first_and_inside_the_image(model, truth) -> None:
    found = model.eval()(truth.images)
    count = model.config.detections
    assert found.boxes.shape == (5, count, 4) and found.labels.dtype == torch.int64 and found.valid.dtype == torch.bool
    assert (found.scores.diff(dim=1) <= 0).all() and (found.valid.long().diff(dim=1) <= 0).all()
    assert (found.scores[found.valid] > model.config.score_threshold).all() and not found.scores[~found.valid].any()
    assert found.valid.any()
    assert (found.boxes >= 0).all() and (found.boxes <= torch.tensor([48.0, 64.0, 48.0, 64.0])).all()
    for image in range(5):
        for label in range(3):
            same = found.boxes[image][found.valid[image] & (found.labels[image] == label)]
            assert (box_iou(same, same).triu(1) <= model.config.detection_nms_iou).all()


def test_a_few_steps_learn_a_batch_by_heart(model, truth) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    history = []
    for _ in range(60):
        optimizer.zero_grad()
        history.append(float(sum(train_step(model, truth).values()).detach()))
        optimizer.step()
    assert history[-1] < history[0] / 2


def test_state_dict_holds_parameters_only(model) -> None:
    assert list(model.state_dict()) == [name for name, _ in model.named_parameters()]


def test_wrong_arguments_are_named(model, truth) -> None:
    with pytest.raises(ValueError, match=r"`images` must be \(B, 3, H, W\) floats in 0..1, got \(3, 64, 48\)"):
        model(truth.images[0])
    with pytest.raises(ValueError, match=r"`images` must be .* torch.uint8"):
        model(truth.images.to(torch.uint8))
    with pytest.raises(ValueError, match="training needs `boxes`, `labels` and `seeds`; missing: seeds"):
        model(truth.images, truth.boxes, truth.labels)
    with pytest.raises(ValueError, match=r"`boxes` must be \(5, 5, 4\), four numbers for each label, got \(4, 5, 4\)"):
        model(truth.images, truth.boxes[:4], truth.labels, truth.seeds)
    with pytest.raises(
        ValueError, match=r"`labels` must be \(5, M\) whole numbers, a row for each image, got \(4, 5\)"
    ):
        model(truth.images, truth.boxes, truth.labels[:4], truth.seeds)
    with pytest.raises(ValueError, match=r"`seeds` must be \(5,\), one for each image, got \(4,\)"):
        model(truth.images, truth.boxes, truth.labels, truth.seeds[:4])
    with pytest.raises(ValueError, match="`labels` must have at least one column"):
        model(truth.images, truth.boxes[:, :0], truth.labels[:, :0], truth.seeds)


def test_values_that_teach_something_else_are_refused(model, truth) -> None:
    images, boxes, labels, seeds = truth.images, truth.boxes, truth.labels, truth.seeds
    for wrong, words in (
        (((images * 255), boxes, labels, seeds), r"`images` must be in 0..1, .* got 0\S* to 25"),
        ((images - 0.5, boxes, labels, seeds), "the detector subtracts the mean itself"),
        ((images, boxes, labels.float(), seeds), r"`labels` must be \(5, M\) whole numbers"),
        ((images, boxes, labels + 1, seeds), r"`labels` must be from 0 to 2 \(-1 where there is no box\), got 0 to 3"),
        ((images, torch.cat([boxes[..., :2], boxes[..., :2] - 1], 2), labels, seeds), "not width and height"),
    ):
        with pytest.raises(ValueError, match=words):
            model(*wrong)
    with pytest.raises(ValueError, match="the detector subtracts the mean"):
        model(images * 255)
    model(images, torch.full_like(boxes, torch.nan), labels, seeds)  # the trainer says which picture it is


@pytest.mark.parametrize(
    ("backbone", "fpn", "norm", "roi_op"),
    [
        ("resnet18", True, "group", "align"),
        ("resnet18", False, "frozen", "pool"),
        ("mobilenet_v3_small", True, "frozen", "pool"),
        ("mobilenet_v3_large", False, "group", "align"),
    ],
)
def test_backbones_of_torchvision_train_and_detect(truth, backbone, fpn, norm, roi_op) -> None:
    pytest.importorskip("torchvision")
    config = FasterRCNNConfig(
        num_classes=3,
        backbone=backbone,
        fpn=fpn,
        norm=norm,
        roi_op=roi_op,
        proposals=12,
        anchor_sizes=(8.0, 12.0, 16.0, 24.0, 32.0, 48.0)[: 3 if "mobile" in backbone else 5 if fpn else 2],
        pre_nms_proposals=40,
        head_width=32,
        head_layers=2,
        class_specific_boxes=fpn,
    )
    model = FasterRCNN(config)
    images = torch.nn.functional.interpolate(truth.images[:2], size=(96, 64))
    losses = train_step(
        model, truth._replace(images=images, boxes=truth.boxes[:2], labels=truth.labels[:2], seeds=truth.seeds[:2])
    )
    assert all(value.isfinite() for value in losses.values())
    unused = [name for name, p in model.named_parameters() if p.grad is None]
    assert unused == []
    detections = model(images)
    assert isinstance(detections, Detections) and detections.boxes.isfinite().all()


def test_wrong_backbones_are_named() -> None:
    pytest.importorskip("torchvision")
    with pytest.raises(ValueError, match=r"`backbone` must be .*got 'vgg16'"):
        FasterRCNN(FasterRCNNConfig(backbone="vgg16"))
    with pytest.raises(ValueError, match="`anchor_sizes` must be a multiple of 5 levels"):
        FasterRCNN(FasterRCNNConfig(backbone="resnet18", fpn=True))
