from samplers import DistributedSampler
from torch.utils.data import DataLoader, DistributedSampler as Plain


def main(args, dataset, model):
    loader = DataLoader(dataset, args.batch_size, sampler=DistributedSampler(dataset))
    for epoch in range(args.epochs):
        again = DataLoader(dataset, args.batch_size, sampler=Plain(dataset, seed=epoch))
        for x, y in zip(loader, again):
            model(x, y).backward()
