import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def main():
    dist.init_process_group(backend="nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    ds = TensorDataset(torch.randn(1000, 8), torch.randn(1000, 1))
    sampler = DistributedSampler(ds) if dist.get_world_size() > 1 else None
    loader = DataLoader(ds, batch_size=32, shuffle=sampler is None, sampler=sampler)
    val = DataLoader(TensorDataset(torch.randn(10, 8), torch.randn(10, 1)), batch_size=5)
    model = DDP(torch.nn.Linear(8, 1).cuda(local_rank), device_ids=[local_rank])
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(10):
        if sampler is not None:
            sampler.set_epoch(epoch)
        for x, y in loader:
            loss = torch.nn.functional.mse_loss(model(x.cuda()), y.cuda())
            opt.zero_grad()
            loss.backward()
            opt.step()
        if dist.get_rank() == 0:
            model.eval()
            with torch.no_grad():
                for x, y in val:
                    model.module(x.cuda())
            model.train()
        dist.barrier()


if __name__ == "__main__":
    main()
