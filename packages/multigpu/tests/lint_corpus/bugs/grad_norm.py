import torch


def total_grad_norm(parameters):
    total = 0.0
    for p in parameters:
        if p.grad is not None:
            total += p.grad.data.norm(2).item() ** 2  # BUG FL009
    return total ** 0.5
