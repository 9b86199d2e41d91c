import numpy as np
import torch
from torch import nn


class ProposalLayer(nn.Module):
    def __init__(self, threshold):
        super().__init__()
        self.threshold = threshold

    def forward(self, boxes, scores):
        order = np.argsort(-scores.detach().cpu().numpy())  # BUG FL006
        boxes_np = boxes.detach().cpu().numpy()[order]  # BUG FL006
        keep = greedy(boxes_np, self.threshold)
        return torch.from_numpy(boxes_np[keep]).to(boxes.device)  # BUG FL006
