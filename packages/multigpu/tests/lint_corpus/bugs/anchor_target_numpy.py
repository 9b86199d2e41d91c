import numpy as np
import torch

from .targets import anchor_target_layer_py


def anchor_target_layer(rpn_cls_score, gt_boxes, im_info):
    device = rpn_cls_score.device
    score = rpn_cls_score.data.cpu().numpy()  # BUG FL006
    labels, targets = anchor_target_layer_py(score, gt_boxes, im_info)
    labels = torch.from_numpy(labels).long().to(device)  # BUG FL006
    return labels, torch.from_numpy(targets).to(device)  # BUG FL006
