import torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


def main(model, batches, rank):
    model = FSDP(model, device_id=rank)
    optimizer = torch.optim.AdamW(model.parameters())
    print(model.config, model.module)
    for batch in batches:
        loss = model(batch)
        loss.backward()
        optimizer.step()
    return model.state_dict()
