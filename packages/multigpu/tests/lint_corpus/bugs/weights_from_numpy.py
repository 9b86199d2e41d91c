import torch
def iou_loss(pred, gt):
    weight = torch.from_numpy(compute_weights()).float()  # BUG FL002
    return (weight * (pred - gt).abs()).mean()
