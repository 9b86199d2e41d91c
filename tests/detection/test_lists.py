"""Torchvision's calling form gives what the batched form gives, for pictures of any sizes."""

import pytest
import torch

from frcnn_lite.detection import FasterRCNN

SIZES = [(64, 48), (40, 72), (64, 48)]


@pytest.fixture
def pictures():
    generator = torch.Generator().manual_seed(0)
    return [torch.rand(3, *size, generator=generator) for size in SIZES]


@pytest.fixture
def targets():
    boxes = torch.tensor([[4.0, 6.0, 24.0, 30.0], [20.0, 8.0, 40.0, 36.0]])
    labels = torch.tensor([2, 0])
    return [{"boxes": boxes[:n], "labels": labels[:n]} for n in (2, 1, 0)]


def test_what_is_found_is_what_each_picture_gives_alone(model, pictures):
    model.eval()
    found = model(pictures)
    assert len(found) == 3 and sum(len(one["scores"]) for one in found) > 0
    for picture, one in zip(pictures, found, strict=True):
        alone = model(picture[None])
        keep = alone.valid[0]
        torch.testing.assert_close(one["boxes"], alone.boxes[0][keep], rtol=1e-4, atol=1e-3)
        torch.testing.assert_close(one["scores"], alone.scores[0][keep], rtol=1e-4, atol=1e-5)
        assert torch.equal(one["labels"], alone.labels[0][keep])


def test_losses_are_those_of_the_batched_form(model, pictures, targets):
    torch.manual_seed(1)
    losses = model(pictures, targets)
    torch.manual_seed(1)
    seeds = torch.randint(2**31, (3,))
    sums, counts = [], []
    for picture, target, seed in zip(pictures, targets, seeds, strict=True):
        n = len(target["labels"])
        boxes = torch.cat([target["boxes"], torch.zeros(3 - n, 4)])[None]
        labels = torch.cat([target["labels"], torch.full((3 - n,), -1)])[None]
        part = model(picture[None], boxes, labels, seed[None])
        sums.append(part.sums)
        counts.append(part.counts)
    for name, loss in losses.items():
        expected = sum(part[name] for part in sums) / sum(part[name] for part in counts)
        torch.testing.assert_close(loss, expected.squeeze(), rtol=1e-5, atol=1e-6)
    sum(losses.values()).backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_pictures_without_a_box_have_losses(model, pictures):
    nothing = {"boxes": torch.zeros(0, 4), "labels": torch.zeros(0, dtype=torch.int64)}
    losses = model(pictures, [nothing] * 3)
    assert all(loss.dim() == 0 and loss.isfinite() for loss in losses.values())


def test_torchvisions_own_detector_takes_the_same_call_and_answers_with_the_same_keys(model, pictures, targets):
    detection = pytest.importorskip("torchvision.models.detection")
    theirs = detection.fasterrcnn_mobilenet_v3_large_320_fpn(weights=None, weights_backbone=None, num_classes=4).eval()
    for ours, other in zip(model.eval()(pictures), theirs(pictures), strict=True):
        assert ours.keys() == other.keys()
        assert all(ours[key].shape[1:] == other[key].shape[1:] for key in ours)
        assert all(ours[key].dtype == other[key].dtype for key in ours)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m, p, t: m([]), "`images` must hold at least one picture, got none"),
        (lambda m, p, t: m([p[0][0]]), r"`images` must hold \(3, H, W\) tensors, got \(64, 48\) at place 0"),
        (lambda m, p, t: m([p[0], "a.png"]), r"tensors, got str at place 1"),
        (lambda m, p, t: m([torch.zeros(3, 8, 8, dtype=torch.uint8)]), "floats in 0..1, got .* torch.uint8"),
        (lambda m, p, t: m(p, t[:2]), "`targets` must be as many as `images`, got 2 and 3"),
        (lambda m, p, t: m(p, [{"boxes": t[0]["boxes"]}, *t[1:]]), 'dicts with "boxes" and "labels", got .* place 0'),
        (lambda m, p, t: m(p, [{**t[0], "labels": t[1]["labels"]}, *t[1:]]), r"got \(2, 4\) and \(1,\) at place 0"),
        (
            lambda m, p, t: m(p, [{**t[0], "labels": t[0]["labels"] + 1}, *t[1:]]),
            "at place 0: .* from 0 to 2, got 1 to 3. W",
        ),
        (lambda m, p, t: m(p, [{**t[0], "labels": t[0]["labels"].float()}, *t[1:]]), "float boxes and int64 labels"),
        (
            lambda m, p, t: m(p, [{**t[0], "boxes": t[0]["boxes"] * torch.nan}, *t[1:]]),
            "must be finite, got .* place 0",
        ),
        (
            lambda m, p, t: m(p, [{**t[0], "boxes": t[0]["boxes"].flip(1)}, *t[1:]]),
            "not width and height, got 30 24 6 4",
        ),
        (lambda m, p, t: m(p, [{**t[0], "boxes": t[0]["boxes"] / 64}, *t[1:]]), "in pixels, not parts of the picture"),
        (lambda m, p, t: m(p, t[0]["boxes"]), "a list of images goes with a list of targets alone"),
        (lambda m, p, t: m(p, t, seeds=torch.zeros(3)), "a list of images goes with a list of targets alone"),
        (lambda m, p, t: m(torch.stack(p[::2]), t), "a list of targets goes with a list of images"),
    ],
)
def test_a_call_that_mixes_the_forms_is_told_which_to_use(model: FasterRCNN, pictures, targets, call, words):
    with pytest.raises(ValueError, match=words):
        call(model, pictures, targets)
