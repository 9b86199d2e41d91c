import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel as DDP


def replicated(net, head, batches, criterion, samples, rank):
    model = DDP(net, device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    other = torch.optim.SGD(head.parameters(), lr=0.1)
    for x, y in batches:
        loss = criterion(model(x), y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if rank == 0:
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            print(net(samples).argmax(1), model.module(samples).argmax(1), loss.item())
            features = model.module.features(x).detach()
            probe = criterion(head(features), y)
            probe.backward()
            other.step()
    if rank == 0:
        model = model.module
        model(samples).sum().backward()


def buffers_stay(net, samples, rank):
    model = DDP(net, device_ids=[rank], broadcast_buffers=False)
    if rank == 0:
        with torch.no_grad():
            print(model(samples))


def of_a_teacher(net, student, batches, criterion, rank):
    teacher = DDP(net, device_ids=[rank])
    for x, _ in batches:
        with torch.no_grad():
            wanted = teacher(x)
        if rank == 0:
            loss = criterion(student(x), wanted)
            loss.backward()


def sharded(model, small, batches, path):
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters())
    for batch in batches:
        model(batch).mean().backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        norm = norm.full_tensor()
        if dist.get_rank() == 0:
            print(norm, small(batch))
    weights = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
    if dist.get_rank() == 0:
        torch.save(weights, path)


def pieces(model, rank):
    if rank == 0:
        print(list(get_model_state_dict(model)))


def one_or_many(net, batches, criterion, rank, distributed):
    if distributed:
        model = DDP(net, device_ids=[rank])
        for x, y in batches:
            criterion(model(x), y).backward()
    else:
        model = net
        for x, y in batches:
            if rank == 0:
                criterion(model(x), y).backward()
