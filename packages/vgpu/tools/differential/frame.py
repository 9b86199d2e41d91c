"""What stands around the net and the training of a drawn program of one process."""

HALVES = '''
class Halves(nn.Module):
    """What nn.DataParallel computes on two GPUs: only the first half of a batch reaches the buffers."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        first, *others = x.chunk(2)
        kept = {name: b.clone() for name, b in self.net.named_buffers()}
        outs = [self.net(first)]
        for half in others:
            outs.append(torch.func.functional_call(self.net, {k: b.clone() for k, b in kept.items()}, (half,)))
        return torch.cat(outs)
'''
NOTE = '''
def note(record, step, net, optimizer):
    """Record all that training has changed."""
    for name, p in net.named_parameters():
        record(f"{step} {name}", p)
        record(f"{step} {name}.grad", p.grad)
        record(f"{step} {name}.grad lies with it", p.grad is None or p.grad.device == p.device)
    for name, b in net.named_buffers():
        record(f"{step} {name}", b)
    for k, state in enumerate(optimizer.state.values()):
        for name, value in state.items():
            record(f"{step} optimizer {k} {name}", value)
'''
MAIN = """
if __name__ == "__main__":
    KIND = sys.argv[1] if len(sys.argv) > 1 else "cuda"
    program([torch.device(KIND, k if KIND == "cuda" else None) for k in range(2)], print)
"""


IMPORTS = """import copy
import io
import sys

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint
"""
