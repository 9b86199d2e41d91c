import numpy as np
import torch
def entropy_rank(logits):
    p = torch.softmax(logits, 1)
    ent = -np.sum(p.detach().cpu().numpy() * np.log(p.detach().cpu().numpy()), 1)  # BUG FL006
    return torch.from_numpy(ent).to(logits.device).argsort()  # BUG FL006
