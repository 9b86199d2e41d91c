import torch
import torch.distributed as dist


def gather_rows(x):
    size = dist.get_world_size()
    rows = [torch.empty_like(x)] * size  # BUG FL028
    dist.all_gather(rows, x)
    return torch.cat(rows)


def gather_counts(count):
    dist.all_gather([torch.zeros(1)] * dist.get_world_size(), count)  # BUG FL028
