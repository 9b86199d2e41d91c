import torch
import torch.distributed as dist


def prepare(folder, rank):
    if rank != 0:
        dist.barrier()
        return folder
    download(folder)
    dist.barrier()
    return folder


def first_answer(box, rank):
    if rank != 0:
        receive(box)
        return box[0]
    dist.broadcast_object_list(box, src=0)
    return box[0]


def mean_over_ranks(value, world_size):
    if world_size == 1:
        return value
    dist.all_reduce(value)
    return value / world_size


def log(model, step, rank):
    if rank != 0:
        return
    print(step, sum(weight.square().sum() for weight in model.parameters()).sqrt())


def train(loader, model, criterion, optimizer, rank):
    for step, (x, y) in enumerate(loader):
        loss = criterion(model(x.to(rank)), y.to(rank))
        loss.backward()
        optimizer.step()
        if step % 100 != 0:
            continue
        mean = loss.detach() / dist.get_world_size()
        dist.all_reduce(mean)
        if rank != 0:
            continue
        print(step, mean)


def receive(box):
    dist.broadcast_object_list(box, src=0)


def download(folder):
    torch.hub.download_url_to_file("https://example.org/data.bin", folder)
