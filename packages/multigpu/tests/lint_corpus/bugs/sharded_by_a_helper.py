from torch import optim
from torch.distributed._composable.fsdp import fully_shard


def shard(model, mesh):
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)


def setup(model, mesh, lr):
    optimizer = optim.SGD(params=model.parameters(), lr=lr)  # BUG FL015
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, 100)
    shard(model, mesh)
    return optimizer, scheduler
