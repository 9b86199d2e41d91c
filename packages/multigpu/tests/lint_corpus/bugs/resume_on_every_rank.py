import torch
import torch.distributed as dist

from models import build_net


def main(rank, path):
    dist.init_process_group("nccl")
    torch.cuda.set_device(rank)
    checkpoint = torch.load(path)  # BUG FL014
    model = build_net().cuda(rank)
    model.load_state_dict(checkpoint["model"])
    return torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank])
