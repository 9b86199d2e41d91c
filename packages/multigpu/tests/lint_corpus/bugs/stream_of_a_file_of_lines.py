import json
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset


class Jsonl(IterableDataset):  # BUG FL034
    def __init__(self, path, tok):
        self.path, self.tok = path, tok

    def _lines(self):
        with open(self.path) as f:
            for line in f:
                yield json.loads(line)["text"]

    def __iter__(self):
        return map(self.tok, self._lines())


dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
model = DDP(Net().cuda(), device_ids=[int(os.environ["LOCAL_RANK"])])
for batch in DataLoader(Jsonl("a.jsonl", tok), batch_size=4):
    loss = model(batch.cuda()).mean()
    loss.backward()
    opt.step()
    opt.zero_grad()
