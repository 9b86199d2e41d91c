import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import StateDictType, fully_shard


def train(net, batches, path, rank):
    fully_shard(net)
    optimizer = torch.optim.AdamW(net.parameters())
    for batch in batches:
        net(batch).mean().backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
    state = get_model_state_dict(net, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
    if rank == 0:
        torch.save(state, path)


def train_with_a_wrapper(blocks, batches):
    model = FSDP(torch.nn.Sequential(*blocks), use_orig_params=True)
    optimizer = torch.optim.AdamW(model.parameters())
    for batch in batches:
        model(batch).mean().backward()
        model.clip_grad_norm_(1.0)
        optimizer.step()


def save(model, path):
    with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT):
        state = model.state_dict()
    if dist.get_rank() == 0:
        torch.save(state, path)
