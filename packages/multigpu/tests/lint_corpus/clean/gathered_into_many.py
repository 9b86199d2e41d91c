import torch
import torch.distributed as dist


def gather_rows(x):
    rows = [torch.empty_like(x) for _ in range(dist.get_world_size())]
    dist.all_gather(rows, x)
    return torch.cat(rows)


def gather_objects(found):
    everything = [None] * dist.get_world_size()
    dist.all_gather_object(everything, found)
    return everything


def same_rows_for_all(x):
    sent = [x] * dist.get_world_size()
    got = [torch.empty_like(x) for _ in sent]
    dist.all_to_all(got, sent)
    return got
