import torch


def decode(deltas, anchors):
    anchors = anchors.type('torch.cuda.FloatTensor')  # BUG FL003
    centers = anchors[:, :2] + deltas[:, :2] * anchors[:, 2:]
    return torch.cat([centers, anchors[:, 2:] * deltas[:, 2:].exp()], 1)
