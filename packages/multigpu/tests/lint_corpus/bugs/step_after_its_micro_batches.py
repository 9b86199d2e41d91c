import torch
from torch.nn.parallel import DistributedDataParallel


class Trainer:
    def __init__(self, model, loader, rank, micro_batches):
        self.model = DistributedDataParallel(model.to(rank), device_ids=[rank])
        self.loader = loader
        self.rank = rank
        self.micro_batches = micro_batches
        self.optimizer = torch.optim.AdamW(self.model.parameters())

    def step(self, batches):
        self.optimizer.zero_grad()
        for inputs, targets in batches:
            loss = torch.nn.functional.mse_loss(self.model(inputs.to(self.rank)), targets.to(self.rank))
            loss = loss / self.micro_batches
            loss.backward()  # BUG FL023
        self.optimizer.step()
