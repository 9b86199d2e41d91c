import torch
from torch import nn
class Head(nn.Module):
    def __init__(self, stride):
        super().__init__()
        self.stride = stride
        self.register_buffer("anchors", torch.tensor([[1., 2.]]), persistent=False)
    def forward(self, x):
        self.in_shape = list(x.shape)
        h, w = x.shape[-2:]
        ys = torch.arange(h, dtype=x.dtype, device=x.device)
        xs = torch.arange(w).to(ys)
        return x * self.anchors.sum() + ys[:, None] + xs * self.stride
