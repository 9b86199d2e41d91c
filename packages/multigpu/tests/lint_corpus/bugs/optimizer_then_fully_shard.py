import torch
from torch.distributed.fsdp import fully_shard

from models import Transformer


def main(args, batches):
    model = Transformer(args)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, fused=True)  # BUG FL015
    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)
    for tokens in batches:
        loss = model(tokens)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
