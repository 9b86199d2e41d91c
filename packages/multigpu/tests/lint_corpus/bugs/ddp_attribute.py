import torch
from torch.nn.parallel import DistributedDataParallel as DDP


class Runner:
    def __init__(self, model, rank):
        torch.cuda.set_device(rank)
        self.model = DDP(model.cuda(rank), device_ids=[rank])

    def run(self, batch):
        with self.model.no_sync():
            self.model(batch)
        return self.model.config.name  # BUG FL012
