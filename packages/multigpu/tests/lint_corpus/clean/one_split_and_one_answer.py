import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, random_split


def train(net, data, gpu):
    dist.init_process_group("nccl")
    torch.cuda.set_device(gpu)
    torch.manual_seed(7 + dist.get_rank())
    taught, judged = random_split(data, [900, 100], generator=torch.Generator().manual_seed(7))
    sampler = DistributedSampler(taught)
    model = DDP(net.cuda(gpu), device_ids=[gpu])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for x, y in DataLoader(taught, sampler=sampler):
            loss = torch.nn.functional.mse_loss(model(x.cuda(gpu)), y.cuda(gpu))
            finite = torch.isfinite(loss.detach()).float()
            dist.all_reduce(finite, dist.ReduceOp.MIN)
            if not finite:
                continue
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model, judged


def split_with_one_seed(data, seed):
    torch.manual_seed(seed)
    return random_split(data, [900, 100])
