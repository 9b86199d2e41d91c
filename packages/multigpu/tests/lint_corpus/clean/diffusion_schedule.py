import torch
from torch import nn
class Diffusion(nn.Module):
    def __init__(self, steps):
        super().__init__()
        betas = torch.linspace(1e-4, 0.02, steps)
        alphas = torch.cumprod(1 - betas, 0)
        self.register_buffer("alphas", alphas)
        self.steps = steps
    def forward(self, x):
        t = torch.randint(0, self.steps, (x.size(0),), device=x.device)
        noise = torch.randn_like(x)
        a = self.alphas[t].view(-1, 1, 1, 1)
        return a.sqrt() * x + (1 - a).sqrt() * noise, t
