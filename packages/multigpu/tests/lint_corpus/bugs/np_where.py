import numpy as np
import torch


def hard_negatives(losses, labels, ratio):
    negative = torch.from_numpy(np.where(labels.cpu() == 0)[0]).to(losses.device)  # BUG FL006
    picked = np.argsort(losses.detach().cpu().numpy())[::-1].copy()  # BUG FL006
    return losses[torch.from_numpy(picked).to(losses.device)][: ratio * len(negative)]  # BUG FL006
