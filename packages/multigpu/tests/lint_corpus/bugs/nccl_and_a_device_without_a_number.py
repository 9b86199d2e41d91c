import torch
import torch.distributed as dist

dist.init_process_group("cpu:gloo,cuda:nccl")  # BUG FL018
DEVICE = torch.device("cuda")  # BUG FL001


def gathered(scores):
    parts = [torch.empty_like(scores, device=DEVICE) for _ in range(dist.get_world_size())]  # BUG FL001
    dist.all_gather(parts, scores.to(DEVICE))  # BUG FL001
    return torch.cat(parts)
