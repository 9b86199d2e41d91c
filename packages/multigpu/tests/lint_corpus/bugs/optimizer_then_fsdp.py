import torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


class Trainer:
    def __init__(self, model, lr, rank):
        self.model = model.to(rank)
        decay = [p for p in self.model.parameters() if p.dim() > 1]
        rest = [p for n, p in self.model.named_parameters() if p.dim() < 2]
        groups = [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=lr)  # BUG FL015
        self.model = FSDP(self.model, device_id=rank)

    def step(self, batch):
        self.model(batch).backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
