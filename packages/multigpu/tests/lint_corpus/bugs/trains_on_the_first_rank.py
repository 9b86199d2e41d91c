import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict, set_model_state_dict
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel as DDP


def replicated(net, batches, criterion, rank):
    model = DDP(net, device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in batches:
        scores = model(x)
        loss = criterion(scores, y)
        if rank == 0:
            loss.backward()  # BUG FL017
        optimizer.step()


def sharded(model, batches, prompt, rank):
    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters())
    for step, batch in enumerate(batches):
        loss = model(batch).mean()
        loss.backward()
        if dist.get_rank() == 0:
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # BUG FL017
            print(step, norm)
        optimizer.step()
        if rank == 0 and step % 100 == 0:
            with torch.no_grad():
                print(model(prompt).argmax(-1))  # BUG FL017


class Trainer:
    def __init__(self, model, rank):
        self.model, self.rank = model, rank
        self.whole = StateDictOptions(full_state_dict=True, cpu_offload=True)
        self.wrapped = FSDP(model, use_orig_params=True)

    def step(self, batch, optimizer):
        loss = self.wrapped(batch).mean()
        loss.backward()
        if self.rank == 0:
            self.wrapped.clip_grad_norm_(1.0)  # BUG FL017
        optimizer.step()

    def look(self, batch):
        if self.rank == 0:
            return self.wrapped(batch)  # BUG FL017
        return None


def save(model, path):
    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    if dist.get_rank() == 0:
        torch.save(get_model_state_dict(model, options=options), path)  # BUG FL017


def load(model, path):
    if dist.get_rank() == 0:
        weights = torch.load(path, map_location="cpu")
        options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
        set_model_state_dict(model, weights, options=options)  # BUG FL017
