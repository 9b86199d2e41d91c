import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler


def main(args, rank, dataset, model):
    dist.init_process_group("nccl")
    torch.cuda.set_device(rank)
    sampler = DistributedSampler(dataset, shuffle=True)  # BUG FL016
    loader = DataLoader(dataset, args.batch_size, sampler=sampler)
    model = DDP(model.cuda(), device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), args.lr)
    for epoch in range(args.epochs):
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda()).backward()
            optimizer.step()
