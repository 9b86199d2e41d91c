from torch.utils.data import DataLoader, DistributedSampler


def loaders(train_set, val_set, batch_size):
    train_sampler = DistributedSampler(train_set, shuffle=False)
    val_sampler = DistributedSampler(val_set)
    return DataLoader(train_set, batch_size, sampler=train_sampler), DataLoader(val_set, batch_size, sampler=val_sampler)


def main(args, model, train_set, val_set):
    train_loader, val_loader = loaders(train_set, val_set, args.batch_size)
    for epoch in range(args.epochs):
        for x, y in train_loader:
            model(x, y).backward()
