import torch
from torch.utils.data import DataLoader, RandomSampler
from torch.utils.data.distributed import DistributedSampler
from tqdm import tqdm, trange


def train_one(model, loader, optimizer, device):
    for batch in tqdm(loader):
        loss = model(*(part.to(device) for part in batch))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def main(args, train_data, model, optimizer, device):
    if args.local_rank == -1:
        sampler = RandomSampler(train_data)
    else:
        sampler = DistributedSampler(train_data)  # BUG FL016
    loader = DataLoader(train_data, sampler=sampler, batch_size=args.train_batch_size)
    for _ in trange(int(args.num_train_epochs), desc="Epoch"):
        train_one(model, loader, optimizer, device)
