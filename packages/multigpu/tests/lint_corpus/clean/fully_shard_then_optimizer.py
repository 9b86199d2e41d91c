import torch
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard


def main(model, teacher, head, args):
    of_head = torch.optim.SGD(head.parameters(), lr=args.lr)
    optimizer = None
    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)
    fully_shard(teacher)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    return of_head, optimizer


def with_original_parameters(model, lr):
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    return FullyShardedDataParallel(model, use_orig_params=True), optimizer


def one_or_the_other(model, lr, sharded):
    if not sharded:
        optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    else:
        fully_shard(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    return optimizer


def made_again(model, lr):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    print(sum(p.numel() for group in optimizer.param_groups for p in group["params"]))
    fully_shard(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    return optimizer
