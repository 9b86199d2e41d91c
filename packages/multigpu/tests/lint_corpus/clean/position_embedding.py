import torch
import torch.nn as nn
class Pos(nn.Module):
    def forward(self, x):
        B, T, C = x.shape
        pos = torch.arange(T, device=x.device).unsqueeze(0)
        return x + self.emb(pos)
