import torch
import torch.distributed as dist


def train(model, loader, optimizer, rank, path):
    for step, (x, y) in enumerate(loader):
        loss = torch.nn.functional.cross_entropy(model(x.to(rank)), y.to(rank))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if rank == 0 and step % 1000 == 0:
            torch.save(model.module.state_dict(), path)
            dist.barrier()  # BUG FL017
