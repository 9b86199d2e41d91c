from torch.utils.data import DataLoader, DistributedSampler


def main(args, dataset, heldout, model):
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, args.batch_size, sampler=sampler)
    judged = DataLoader(heldout, args.batch_size, sampler=DistributedSampler(heldout))
    for epoch in range(args.epochs):
        if args.distributed:
            sampler.set_epoch(epoch)
        for x, y in loader:
            model(x, y).backward()
        print(epoch, sum(model(x, y).item() for x, y in judged))  # noqa: FL009 once an epoch
