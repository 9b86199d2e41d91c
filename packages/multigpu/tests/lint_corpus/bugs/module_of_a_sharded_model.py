import torch
from torch.distributed.checkpoint.state_dict import get_model_state_dict
from torch.distributed.fsdp import fully_shard


def main(model, batches, path, rank):
    for layer in model.layers:
        fully_shard(layer)
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters())
    for batch in batches:
        model(batch).backward()
        optimizer.step()
    weights = get_model_state_dict(model.module)  # BUG FL019
    if rank == 0:
        torch.save(weights, path)
