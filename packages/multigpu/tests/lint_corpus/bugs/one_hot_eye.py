import torch


def soft_labels(labels, classes, smoothing):
    hot = torch.eye(classes)[labels]  # BUG FL002
    return hot * (1 - smoothing) + smoothing / classes
