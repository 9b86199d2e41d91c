"""The layers of 2017 and their batched twins give the same targets for the same random keys."""

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from course.lessons.nb13 import batched_layers, numpy_layers
from frcnn_lite import data, ops
from frcnn_lite.detection import FasterRCNNConfig
from frcnn_lite.detection.anchors import cell_anchors, grid_anchors
from frcnn_lite.detection.proposals import make_proposals
from frcnn_lite.detection.rpn import RPNOutput

SIZE, ROIS = (16, 16), 48
ANCHORS = grid_anchors(cell_anchors((18.0, 26.0, 36.0), (1.4,)), *SIZE, 8)
ANCHOR_RULE, ROI_RULE = numpy_layers.Rule(0.6, 0.3, 64, 0.5), numpy_layers.Rule(0.5, 0.5, 32, 0.5)


def batch_of(seed, images=4):
    """Truth of `images` scenes, some boxes hard, don't-care areas in all but one, and one image without any box."""
    scenes = data.DigitScenes("train", 1000, seed)
    batch = data.collate([scenes[k] for k in range(images)])
    generator = torch.Generator().manual_seed(seed)
    labels = torch.where(batch.labels >= 0, batch.labels + 1, -1)
    labels[1] = -1
    boxes = batch.boxes * (labels >= 0)[..., None]
    hard = torch.rand(labels.shape, generator=generator) < 0.3  # of padding, too
    corner = torch.rand(images, 2, 2, generator=generator) * 80
    dontcare = torch.cat([corner, corner + 40], dim=2)
    dontcare[0] = 0
    return batched_layers.Truth(boxes, labels, hard, dontcare)


def of_image(truth, k):
    """What the layers of 2017 take: (G, 5), (G, 1) and (D, 4) arrays without padding."""
    real = truth.real[k]
    boxes = torch.cat([truth.boxes[k, real], truth.labels[k, real, None].float()], dim=1)
    areas = truth.dontcare[k, truth.dontcare[k, :, 2] > 0]
    return boxes.numpy(), truth.hard[k, real, None].numpy(), areas.numpy()


@pytest.mark.parametrize("seed", range(8))
def test_anchor_targets(seed):
    truth = batch_of(seed)
    keys = ops.random_keys(torch.arange(4) + seed, len(ANCHORS), 0)
    together = batched_layers.anchor_target_layer(ANCHORS, SIZE, truth, keys, ANCHOR_RULE)
    assert [tuple(x.shape) for x in together] == [(4, 1, 48, 16), *[(4, 12, 16, 16)] * 3]
    for k in range(4):
        alone = numpy_layers.anchor_target_layer(
            ANCHORS.numpy(), SIZE, *of_image(truth, k), keys[k].numpy(), ANCHOR_RULE
        )
        for expected, given in zip(alone, together, strict=True):
            assert expected.shape == (1, *given.shape[1:])
            np.testing.assert_allclose(given[k, None], expected, rtol=1e-5, atol=1e-6)
    assert set(together.labels[1].unique().tolist()) <= {-1, 0}  # no box, no positive anchor


@pytest.mark.parametrize("seed", range(8))
def test_roi_targets(seed):
    truth = batch_of(seed)
    generator = torch.Generator().manual_seed(seed)
    corner = torch.rand(4, ROIS, 2, generator=generator) * 80
    rois = torch.cat([corner, corner + 5 + 30 * torch.rand(corner.shape, generator=generator)], dim=2)
    rois[:, : truth.boxes.shape[1]] += truth.real[..., None] * (truth.boxes + 2 - rois[:, : truth.boxes.shape[1]])
    keys = ops.random_keys(torch.arange(4) + seed, ROIS + truth.boxes.shape[1], 1)
    together = batched_layers.proposal_target_layer(rois, truth, keys, ROI_RULE)
    for k in range(4):
        given_rois = np.concatenate([np.zeros((ROIS, 1), np.float32), rois[k].numpy()], axis=1)
        gt, hard, areas = of_image(truth, k)
        alone = numpy_layers.proposal_target_layer(
            given_rois, gt, hard, areas, 11, keys[k, : ROIS + len(gt)].numpy(), ROI_RULE
        )
        filled = together.labels[k] >= 0
        assert together.labels[k][filled].tolist() == alone.labels[:, 0].tolist()
        np.testing.assert_allclose(together.rois[k][filled], alone.rois[:, 1:])
        own = np.take_along_axis(alone.bbox_targets.reshape(len(filled.nonzero()), 11, 4), alone.labels[:, :, None], 1)
        np.testing.assert_allclose(together.deltas[k][filled], own[:, 0], rtol=1e-5, atol=1e-6)
        assert (alone.inside_weights.sum(axis=1) == 4 * (alone.labels[:, 0] > 0)).all()


@pytest.mark.parametrize("seed", range(4))
def test_proposals(seed):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(2, len(ANCHORS), generator=generator)
    deltas = torch.randn(2, len(ANCHORS), 4, generator=generator) * 0.2
    config = FasterRCNNConfig()
    together = make_proposals(RPNOutput(logits, deltas, ANCHORS, (len(ANCHORS),)), torch.ones(4), (128, 128), config)
    for k in range(2):
        score_map, delta_map = (batched_layers.as_map(x[k, None], SIZE).numpy() for x in (logits[..., None], deltas))
        both = np.concatenate([-score_map, score_map], axis=1)  # background, then foreground
        alone = numpy_layers.proposal_layer(
            both, delta_map, ANCHORS.numpy(), np.array([[128, 128, 1]]), config.pre_nms_proposals, config.proposals, 0.7
        )
        np.testing.assert_allclose(together.boxes[k][together.valid[k]], alone[:, 1:], rtol=1e-5, atol=1e-4)
        assert (alone[:, 0] == 0).all()


class Reads(TorchDispatchMode):
    """Counts operators that the host has to wait for."""

    def __init__(self):
        super().__init__()
        self.operators, self.reads = 0, []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.operators += 1
        if any(name in str(function) for name in ("_local_scalar_dense", "nonzero", "is_nonzero", "masked_select")):
            self.reads.append(str(function))
        return function(*args, **(kwargs or {}))


def test_the_batched_layers_read_nothing_and_cost_the_same_for_any_batch():
    counted = []
    for images in (1, 4):
        truth = batch_of(0, max(images, 2))
        truth = batched_layers.Truth(*(x[:images] for x in truth))
        keys = ops.random_keys(torch.arange(images), len(ANCHORS), 0)
        with Reads() as reads:
            batched_layers.anchor_target_layer(ANCHORS, SIZE, truth, keys, ANCHOR_RULE)
        counted.append(reads.operators)
        assert reads.reads == []
    assert counted[0] == counted[1]
