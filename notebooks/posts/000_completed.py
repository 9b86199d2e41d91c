# Completed: what the guide leaves out, added so that the three files beside this one run. Nothing here is its author's.
"""A Faster R-CNN as small as the guide's listings allow: one image, one anchor a cell, two convolutions, NumPy layers.

Shapes are those of the guide's docstrings with A = 1. `assemble` takes the guide's functions, as printed or changed.

    python -m vgpu --gpus 2 000_completed.py    trains it on two GPUs, by the guide's own loop, for 60 steps
"""
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from torch import nn

from frcnn_lite import data, ops, parallel
from frcnn_lite.detection.anchors import cell_anchors, grid_anchors
from frcnn_lite.ops.matching import BACKGROUND, match

STRIDE, CLASSES, SAMPLES, POOLED = 8, 11, 8, 3
WEIGHTS = torch.ones(4)


def anchors_of(shape):
    return grid_anchors(cell_anchors((26.0,), (1.4,)), shape[-2], shape[-1], STRIDE)


def as_map(values, shape):
    """(H * W, n) rows to (1, n, H, W), as NumPy."""
    return values.reshape(shape[-2], shape[-1], -1).permute(2, 0, 1)[None].contiguous().numpy()


# ---- the three functions behind the guide's layers, after py-faster-rcnn's, without its random choices ---------------


def proposal_layer_py(prob, deltas, im_info, cfg_key, feat_stride, anchor_scales):
    """The twelve best boxes, (12, 5); column 0 is the image, always 0."""
    rows = torch.from_numpy(deltas)[0].permute(1, 2, 0).reshape(-1, 4)
    boxes = ops.decode_boxes(rows, anchors_of(prob.shape), WEIGHTS)
    boxes = ops.clip_boxes(boxes, int(im_info[0, 0]), int(im_info[0, 1]))
    best = torch.from_numpy(prob)[0, 1].flatten().argsort(descending=True, stable=True)[:12]
    return np.hstack([np.zeros((12, 1), np.float32), boxes[best].numpy()])


def anchor_target_layer_py(score, gt_boxes, gt_ishard, dontcare_areas, im_info, feat_stride, anchor_scales):
    anchors, gt = anchors_of(score.shape), torch.from_numpy(gt_boxes)
    real = torch.ones(1, len(gt), dtype=torch.bool)
    found = match(ops.box_iou(gt[None, :, :4], anchors), real, 0.6, 0.3, allow_low_quality=True)
    labels = torch.where(found >= 0, 1, torch.where(found == BACKGROUND, 0, -1))
    targets = ops.encode_boxes(gt[found[0].clamp(min=0), :4], anchors, WEIGHTS)
    inside = (found >= 0)[0][:, None].float().expand(-1, 4)
    return (as_map(labels[0], score.shape), *(as_map(x, score.shape) for x in (targets, inside, inside)))


def proposal_target_layer_py(rois, gt_boxes, gt_ishard, dontcare_areas, num_classes):
    """Foreground first, then background, 2 * SAMPLES rows at most."""
    boxes = torch.cat([torch.from_numpy(rois)[:, 1:], torch.from_numpy(gt_boxes)[:, :4]])
    gt = torch.from_numpy(gt_boxes)
    best, gt_index = ops.box_iou(boxes, gt[:, :4]).max(dim=1)
    kept = torch.cat([(best >= 0.5).nonzero()[:SAMPLES, 0], (best < 0.5).nonzero()[:SAMPLES, 0]])
    foreground = best[kept] >= 0.5
    labels = torch.where(foreground, gt[gt_index[kept], 4].long(), 0)
    deltas = ops.encode_boxes(gt[gt_index[kept], :4], boxes[kept], WEIGHTS)
    own = torch.nn.functional.one_hot(labels, num_classes).float() * foreground[:, None]
    inside = own[:, :, None].expand(-1, -1, 4).flatten(1)
    targets = (own[:, :, None] * deltas[:, None]).flatten(1)
    rows = torch.cat([torch.zeros(len(kept), 1), boxes[kept]], dim=1)
    return tuple(x.contiguous().numpy() for x in (rows, labels[:, None], targets, inside, inside))


# ---- the compiled extension behind its RoI pooling -------------------------------------------------------------------


class roi_pooling:  # named as the extension
    @staticmethod
    def roi_pooling_forward_cuda(height, width, scale, features, rois, output, argmax):
        parallel.same_device(features=features, rois=rois, output=output, argmax=argmax)  # a kernel would not ask
        values, places = torch.ops.frcnn_lite.roi_pool(features, rois, height, width, scale)
        output.copy_(values)
        argmax.copy_(places)

    @staticmethod
    def roi_pooling_backward_cuda(height, width, scale, grad_output, rois, grad_input, argmax):
        images, size = rois[:, 0].long(), list(grad_input.shape)
        grad_input.copy_(torch.ops.frcnn_lite.roi_pool_backward(grad_output, argmax, images, size, False))

    @staticmethod
    def roi_pooling_forward(height, width, scale, features, rois, output):
        """Reads (B, H, W, C) from the first address on, as the C code does, whatever the strides say."""
        b, h, w, c = features.shape
        memory = features.as_strided((b, h, w, c), (h * w * c, w * c, c, 1))
        output.copy_(ops.roi_pool(memory.permute(0, 3, 1, 2).contiguous(), rois, (height, width), scale))


class OldStyleFunction(torch.autograd.Function):
    """Runs the guide's `forward(self, ...)`, `self` being `state`, a new one at each call unless one is given.

    The guide prints no backward; this is that of public copies of the class, to the letter where devices are concerned.
    """

    @staticmethod
    def forward(ctx, features, rois, printed_forward, state=None):
        ctx.state = state or SimpleNamespace()
        vars(ctx.state).update(pooled_height=POOLED, pooled_width=POOLED, spatial_scale=1 / STRIDE)
        return printed_forward(ctx.state, features, rois)

    @staticmethod
    def backward(ctx, grad_output):
        state = ctx.state
        grad_input = torch.zeros(*state.feature_size).cuda()
        size = (state.pooled_height, state.pooled_width, state.spatial_scale)
        roi_pooling.roi_pooling_backward_cuda(*size, grad_output.contiguous(), state.rois, grad_input, state.argmax)
        return grad_input, None, None, None


# ---- the two networks ------------------------------------------------------------------------------------------------


def assemble(parts, debug=False):
    """A detector in which each name of `parts` is the function given there."""

    class RPN(nn.Module):
        def __init__(self):
            super().__init__()
            self.features = nn.Conv2d(3, 8, STRIDE, stride=STRIDE)
            self.score_conv, self.bbox_conv = nn.Conv2d(8, 2, 1), nn.Conv2d(8, 4, 1)
            self.cross_entropy = self.loss_box = None

        def forward(self, im_data, im_info, gt_boxes, gt_ishard, dontcare_areas):
            features = self.features(parts["np_to_variable"](im_data, self.score_conv.weight)).relu()
            score, deltas = self.score_conv(features), self.bbox_conv(features)
            rois = parts["proposal_layer"](score.softmax(1), deltas, im_info, "TRAIN", [STRIDE], [26])
            if self.training:
                truth = (gt_boxes, gt_ishard, dontcare_areas)
                rpn_data = parts["anchor_target_layer"](score, *truth, im_info, [STRIDE], [26])
                self.cross_entropy, self.loss_box = parts["RPN.build_loss"](self, score, deltas, rpn_data)
            return features, rois

    class FasterRCNN(nn.Module):
        forward = parts["forward"]
        build_loss = parts["FasterRCNN.build_loss"]
        proposal_target_layer = staticmethod(parts["proposal_target_layer"])

        def __init__(self):
            super().__init__()
            self.rpn, self.n_classes, self.debug = RPN(), CLASSES, debug
            self.res5_features = nn.Sequential(nn.Conv2d(8, 16, POOLED), nn.ReLU())
            self.score_fc, self.bbox_fc = nn.Linear(16, CLASSES), nn.Linear(16, CLASSES * 4)
            self.cross_entropy = self.loss_box = None

        def roi_pool(self, features, rois):
            return parts["roi_pool"](features, rois)

    return FasterRCNN()


# ---- the listings, and the whole ------------------------------------------------------------------------------------

LISTINGS = ("layers", "faster_rcnn", "roi_pool")
LAYERS = ("proposal_layer", "anchor_target_layer", "proposal_target_layer")
# The one slip: it asks `argmax`, a tensor on the CPU, for the device, and means `features`.
SLIP = ("argmax.cuda(argmax.get_device())", "argmax.cuda(features.get_device())")
# The loss that the guide returns is that of the head; this adds that of the RPN.
RETURNED = "return self.cross_entropy + self.loss_box * 10"
BOTH_LOSSES = (RETURNED, f"{RETURNED} + self.rpn.cross_entropy + self.rpn.loss_box * 10")


def names_of(*changes, compiled=compile):
    """Every name of the three listings; in each pair of `changes` the second text takes the place of the first."""
    scope = dict(globals())
    for name in LISTINGS:
        text = Path(__file__).with_name(f"000_{name}.py").read_text(encoding="utf-8")
        for old, new in changes:
            text = text.replace(old, new)
        exec(compiled(text, f"000_{name}.py", "exec"), scope)
    return scope


def parts_of(scope):
    """The guide's functions, as `assemble` takes them."""
    parts = {name: scope[name] for name in LAYERS}
    parts |= {f"{name}.build_loss": scope[name].build_loss for name in ("RPN", "FasterRCNN")}
    parts["roi_pool"] = lambda features, rois: OldStyleFunction.apply(features, rois, scope["RoIPoolFunction"].forward)
    parts["np_to_variable"] = lambda x, like: scope["np_to_variable"](x)
    return parts | {"forward": scope["FasterRCNN"].forward}


def detector(*changes):
    """The guide's detector on cuda:0, always with the same weights."""
    torch.manual_seed(0)
    return assemble(parts_of(names_of(*changes))).cuda()


@cache
def scenes():
    return data.DigitScenes("train", 200)


def blob(i):
    """The arguments of `forward` for scene i, NumPy arrays in the guide's shapes; class 0 is the background."""
    scene = scenes()[i]
    boxes = torch.cat([scene.boxes, scene.labels[:, None] + 1.0], dim=1)
    others = torch.tensor([[128.0, 128, 1]]), boxes, torch.zeros(len(boxes), 1), torch.zeros(0, 4)
    return tuple(x.numpy() for x in (scene.image[None] / 255, *others))


def train(net, gpus, steps):
    """The guide's loop: replicas, their losses and the gathered loss of each step; returns the losses."""
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    losses = []
    for step in range(steps):
        replicas = nn.parallel.replicate(net, gpus)
        inputs = [blob(step * len(gpus) + k) for k in range(len(gpus))]
        loss = nn.parallel.gather(nn.parallel.parallel_apply(replicas, inputs, devices=gpus), gpus[0]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


if __name__ == "__main__":
    import warnings

    warnings.filterwarnings("ignore", "size_average and reduce|Implicit dimension choice|Was asked to gather")
    torch.set_num_threads(1)  # the detector is so small that more threads wait for each other
    losses = train(detector(SLIP, BOTH_LOSSES), [0, 1], steps=60)
    for first in range(0, 60, 10):
        print(f"steps {first:2} to {first + 9:2}: loss {sum(losses[first:first + 10]) / 10:.1f}")
