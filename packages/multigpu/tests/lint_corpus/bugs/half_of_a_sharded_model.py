import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import StateDictType, fully_shard


def train(net, batches, path, rank):
    for block in net.blocks:
        fully_shard(block)
    fully_shard(net)
    optimizer = torch.optim.AdamW(net.parameters())
    for batch in batches:
        net(batch).mean().backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
    if rank == 0:
        torch.save(net.state_dict(), path)  # BUG FL029


def train_with_a_wrapper(blocks, batches, rank):
    model = FSDP(torch.nn.Sequential(*blocks), use_orig_params=True)
    optimizer = torch.optim.AdamW(model.parameters())
    for batch in batches:
        model(batch).mean().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # BUG FL030
        optimizer.step()


def save(model, path):
    if dist.get_rank() == 0:
        with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT):
            torch.save(model.state_dict(), path)  # BUG FL017
