from engine import train_one_epoch
from torch.utils.data import DataLoader, DistributedSampler


def main(args, dataset, model, optimizer):
    loader = DataLoader(dataset, args.batch_size, sampler=DistributedSampler(dataset))
    for epoch in range(args.epochs):
        train_one_epoch(model, loader, optimizer, epoch)
