import torch


def iou_thresholds():
    return torch.linspace(0.5, 0.95, 10)


def average_precision(precision, recall):
    points = torch.linspace(0, 1, 101, device=recall.device)
    index = torch.searchsorted(recall, points).clamp(max=len(precision) - 1)
    return precision[index].mean()
