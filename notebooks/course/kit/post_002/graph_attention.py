"""Graph attention over classes: each class looks at every other before it is scored."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class GraphAttention(nn.Module):
    """One head of graph attention on a complete graph, (B, N, C) -> (B, N, C): each node plus a weighted mean of all.

    Weights are softmax over j of LeakyReLU(to . Wx_i + from . Wx_j); the mean of the Wx_j passes ELU.
    Source: P. Velickovic et al., "Graph Attention Networks", ICLR 2018, section 2.1, with the skip connection of their
    inductive experiments: without it all classes start from nearly the same mean, and training takes long to part them.
    The post calls `self.gat` without showing it. Its parameters are shared by all classes: it was parallel already.
    """

    def __init__(self, channels: int, negative_slope: float = 0.2) -> None:
        super().__init__()
        self.linear = nn.Linear(channels, channels, bias=False)
        self.to_score = nn.Linear(channels, 1, bias=False)
        self.from_score = nn.Linear(channels, 1, bias=False)
        self.negative_slope = negative_slope

    def forward(self, x: Tensor) -> Tensor:
        h = self.linear(x)
        # a . [h_i, h_j] is a sum of two dot products, so all N * N scores come from 2 * N numbers
        scores = self.to_score(h) + self.from_score(h).transpose(1, 2)
        attention = torch.softmax(F.leaky_relu(scores, self.negative_slope), dim=2)
        return x + F.elu(attention @ h)
