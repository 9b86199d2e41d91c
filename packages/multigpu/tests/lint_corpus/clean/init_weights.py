import torch
from torch import nn


def init_weights(module):
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        module.bias.data.copy_(torch.linspace(-1, 1, module.bias.numel()))
    elif isinstance(module, nn.Embedding):
        module.weight.data = torch.randn(module.weight.shape) * 0.02
