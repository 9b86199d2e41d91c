from torch.distributed.fsdp import fully_shard


def setup(model, net):
    fully_shard(model.module)
    fully_shard(net)
    inner = net.module if hasattr(net, "module") else net
    return model.module, inner


def before(model):
    model = model.module
    fully_shard(model)
    return model
