import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.utils.data as data
from torchvision import datasets, transforms


class Trainer:
    def __init__(self, rank, world):
        self.rank = rank
        self.model = nn.parallel.DistributedDataParallel(nn.Linear(784, 10).to(rank), device_ids=[rank])
        train_set = datasets.MNIST("data", train=True, transform=transforms.ToTensor())
        self.train_loader = data.DataLoader(train_set, batch_size=64 // world, shuffle=True)  # BUG FL021
        self.opt = torch.optim.Adam(self.model.parameters())

    def fit(self):
        for images, labels in self.train_loader:
            self.opt.zero_grad()
            out = self.model(images.flatten(1).to(self.rank))
            nn.functional.cross_entropy(out, labels.to(self.rank)).backward()
            self.opt.step()


def run(rank, world):
    dist.init_process_group("nccl", rank=rank, world_size=world)
    torch.cuda.set_device(rank)
    Trainer(rank, world).fit()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(run, args=(2,), nprocs=2)
