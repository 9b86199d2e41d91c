import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler


class State:
    def __init__(self, optimizer):
        self.optimizer = optimizer

    def resume(self, path, gpu):
        self.optimizer.load_state_dict(torch.load(path, map_location=f"cuda:{gpu}"))


def train(net, taught, judged, path, gpu):
    dist.init_process_group("nccl")
    torch.cuda.set_device(gpu)
    rank = dist.get_rank()
    optimizer = torch.optim.Adam(net.parameters())
    state = State(optimizer)
    if rank == 0:
        state.resume(path, gpu)  # BUG FL039
    model = DDP(net.cuda(gpu), device_ids=[gpu])
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
    sampler = DistributedSampler(taught)
    held_back = DataLoader(judged, sampler=DistributedSampler(judged, shuffle=False))
    val_loader = DataLoader(judged, sampler=DistributedSampler(judged, shuffle=False))
    for epoch in range(9):
        sampler.set_epoch(epoch)
        for x, y in DataLoader(taught, sampler=sampler):
            scores = model.module(x.cuda(gpu))  # BUG FL038
            torch.nn.functional.mse_loss(scores, y.cuda(gpu)).backward()
            optimizer.step()
        val = judge(net, val_loader, gpu)
        schedule.step(val)  # BUG FL040
    return held_back


@torch.no_grad()
def judge(net, val_loader, gpu):
    return sum((net(x.cuda(gpu)) - y.cuda(gpu)).square().mean() for x, y in val_loader)
