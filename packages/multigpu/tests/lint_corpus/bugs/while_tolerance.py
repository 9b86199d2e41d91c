import torch


def power_iteration(matrix, tolerance=1e-6):
    v = torch.ones_like(matrix[0])
    change = matrix.new_tensor(1.0)
    while change.item() > tolerance:  # BUG FL009
        w = matrix @ v
        w = w / w.norm()
        change = (w - v).norm()
        v = w
    return v
