import os

import torch
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel as DDP


class Lamb(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3):
        super().__init__(params, dict(lr=lr))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                p.add_(p.grad * (p.norm() / p.grad.norm()), alpha=-group["lr"])


model = DDP(torch.nn.Linear(8, 8).cuda(), device_ids=[int(os.environ["LOCAL_RANK"])])
opt = Lamb(model.parameters())
other = torch.nn.Linear(8, 8).cuda()
fully_shard(other)
adam = torch.optim.AdamW(other.parameters())
