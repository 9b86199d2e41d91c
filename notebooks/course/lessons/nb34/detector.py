"""A small detector of digits, and its training on one GPU or on several: `torchrun --nproc-per-node 2 FILE`."""

import contextlib

import torch
from torch import distributed, nn
from torch.distributed.fsdp import fully_shard
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

from frcnn_lite.data.batch import collate
from frcnn_lite.data.scenes import DigitScenes
from frcnn_lite.parallel.process_group import process_group

CELLS, STRIDE = 8, 8  # pictures of 64 x 64, and a prediction for each block of 8 x 8 pixels


def middle_points():
    """Where the middles of the cells are, in pixels: x and y, (2, 8, 8)."""
    at = torch.arange(CELLS) * STRIDE + STRIDE / 2
    return torch.stack(torch.meshgrid(at, at, indexing="xy"))


class Anchors(nn.Module):
    """The middles of the cells, on the device of the features; also in a replica, and after the net has moved."""

    def __init__(self):
        super().__init__()
        self.register_buffer("middles", middle_points(), persistent=False)

    def forward(self, features):
        return self.middles


class ObjectRate(nn.Module):
    """A running mean of how many cells have an object. It is kept from step to step, also under DataParallel, and what
    it returns keeps its value when the layer is called again before backward.
    """

    def __init__(self):
        super().__init__()
        self.register_buffer("rate", torch.zeros(()))

    def forward(self, target):
        if self.training:
            self.rate.copy_(0.5 * self.rate + 0.5 * target.mean())
        return self.rate.clone()


class Detector(nn.Module):
    """Scores, boxes and classes of the cells; with boxes and labels the parts of the loss."""

    def __init__(self, dropout=0.2, classes=10):
        super().__init__()
        shapes = ((3, 16, 4, 4, 0), (16, 32, 2, 2, 0), (32, 32, 3, 1, 1))  # channels, kernel, stride, padding
        convs = [nn.Conv2d(*shape, bias=False) for shape in shapes]
        blocks = [(conv, nn.BatchNorm2d(conv.out_channels), nn.ReLU()) for conv in convs]
        self.body = nn.Sequential(*(layer for block in blocks for layer in block))
        self.dropout, self.head = nn.Dropout(dropout), nn.Conv2d(32, 1 + 4 + classes, 1)
        self.anchors, self.rate = Anchors(), ObjectRate()

    def forward(self, images, boxes=None, labels=None):
        out = self.head(self.dropout(self.body(images)))
        middles = self.anchors(out)
        found = torch.cat([middles - out[:, 1:3].exp(), middles + out[:, 3:5].exp()], dim=1)
        if boxes is None:
            return out[:, 0], found, out[:, 5:]
        target, wanted, names = assign(middles, boxes, labels)
        return loss_parts(out, found, target, wanted, names, self.rate(target))


def assign(middles, boxes, labels):
    """For each cell whether its middle is in an object (B, 8, 8), and that object's box (B, 4, 8, 8) and label."""
    (x, y), (x1, y1, x2, y2) = middles, boxes[..., None, None].unbind(2)
    inside = (x > x1) & (x < x2) & (y > y1) & (y < y2) & (labels >= 0)[..., None, None]
    owner = inside.int().argmax(dim=1).flatten(1)
    wanted = boxes.gather(1, owner[..., None].expand(-1, -1, 4)).mT.unflatten(2, (CELLS, CELLS))
    return inside.any(dim=1).float(), wanted, labels.gather(1, owner).clamp(min=0).unflatten(1, (CELLS, CELLS))


def loss_parts(out, found, target, wanted, names, rate):
    """For each picture two sums, over its cells and over its objects' cells, and how many there are: (B, 2), (B, 2)."""
    each = F.binary_cross_entropy_with_logits(out[:, 0], target, reduction="none")
    cells = (each * target).sum((1, 2)) + rate * (each * (1 - target)).sum((1, 2))  # most cells are empty
    objects = (found - wanted).abs().mean(1) / 16 + F.cross_entropy(out[:, 5:], names, reduction="none")
    sums = torch.stack([cells, (objects * target).sum((1, 2))], dim=1)
    return sums, torch.stack([torch.full_like(cells, CELLS**2), target.sum((1, 2))], dim=1).detach()


def loss_of_rank(sums, counts):
    """What a rank calls backward() on: after DDP's mean over the ranks, the gradient is that of one process, where the
    sums of all pictures are divided by the counts of all pictures.
    """
    total = counts.sum(0)
    distributed.all_reduce(total)
    return (distributed.get_world_size() * sums.sum(0) / total.clamp(min=1)).sum()


def log_losses(sums, counts):
    """The mean loss over the objects of all ranks, the same number on every rank; 0 where there are none."""
    together = torch.stack([sums[:, 1].sum(), counts[:, 1].sum()]).detach()
    distributed.all_reduce(together)
    return (together[0] / together[1].clamp(min=1)).item()


def seed_rank(seed):
    """A new net, equal on every rank (FSDP2 sends no weights around). From then on each rank's GPU draws its own random
    numbers, and a second run draws the same ones again.
    """
    torch.manual_seed(seed)
    net = Detector()
    torch.manual_seed(seed + 1 + distributed.get_rank())
    return net


def wrap(net):
    """The net under DDP, normalised by the pictures of all ranks."""
    net = nn.SyncBatchNorm.convert_sync_batchnorm(net).cuda()
    return DistributedDataParallel(net, device_ids=[torch.cuda.current_device()])


def shard(net, lr):
    """The net under FSDP2, and its optimizer."""
    for part in (net.body, net.head):
        fully_shard(part)
    fully_shard(net)
    return net, torch.optim.SGD(net.parameters(), lr=lr)


def take_step(ddp, optimizer, batch, parts=2):
    """One step of the optimizer, for which the batch goes through in parts. Returns sums and counts of its pictures."""
    optimizer.zero_grad()
    pieces, done = [*zip(*(tensor.chunk(parts) for tensor in batch), strict=True)], []
    for k, piece in enumerate(pieces):
        with contextlib.nullcontext() if k == len(pieces) - 1 else ddp.no_sync():
            done.append(ddp(*piece))
            (loss_of_rank(*done[-1]) / len(pieces)).backward()
    optimizer.step()
    return [torch.cat(part).detach() for part in zip(*done, strict=True)]


def rows_of_rank(count, batch_size, epoch, seed):
    """The batches of row numbers that this rank takes in an epoch. Each epoch has a new order, in which no row is taken
    twice; all ranks have equally many full batches, and rows that fill no batch for everybody are left out.
    """
    rank, ranks = distributed.get_rank(), distributed.get_world_size()
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed + epoch))
    order = order[: count // (ranks * batch_size) * ranks * batch_size]
    return order[rank::ranks].split(batch_size)


def evaluate(net, images, boxes, labels, batch_size=8):
    """The share of cells whose score says rightly whether they have an object, of each picture once."""
    net.eval()
    counts = torch.zeros(2, device="cuda")
    rows_of_mine = torch.arange(distributed.get_rank(), len(images), distributed.get_world_size())
    with torch.no_grad():
        for rows in rows_of_mine.split(batch_size):
            right = (net(images[rows].cuda())[0].cpu() > 0) == assign(middle_points(), boxes[rows], labels[rows])[0]
            counts += torch.tensor([right.sum(), right.numel()], device="cuda")
    distributed.all_reduce(counts)
    net.train()
    return (counts[0] / counts[1]).item()


def save(path, ddp, optimizer, step):
    """Write all that a run needs to go on. When it returns on a rank, the file is complete."""
    states = [None] * distributed.get_world_size()
    distributed.all_gather_object(states, torch.cuda.get_rng_state())
    kept = {"net": ddp.module.state_dict(), "optimizer": optimizer.state_dict(), "step": step, "draws": states}
    if distributed.get_rank() == 0:
        torch.save(kept, path)
    distributed.barrier()


def load(path, ddp, optimizer):
    """Go on where `save` was called, so that the run is the one that was never stopped. Returns the step."""
    kept = torch.load(path, map_location=f"cuda:{torch.cuda.current_device()}", weights_only=True)
    ddp.module.load_state_dict(kept["net"])
    optimizer.load_state_dict(kept["optimizer"])
    torch.cuda.set_rng_state(kept["draws"][distributed.get_rank()].cpu())
    return kept["step"]


def train(images, boxes, labels, epochs=6, batch_size=8):
    """The logged loss after each epoch, and in the end the share of cells that are judged rightly."""
    ddp, losses = wrap(seed_rank(0)), []
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(epochs):
        batches = rows_of_rank(len(images), batch_size, epoch, seed=0)
        steps = [take_step(ddp, optimizer, [t[rows].cuda() for t in (images, boxes, labels)]) for rows in batches]
        losses.append(log_losses(*map(torch.cat, zip(*steps, strict=True))))
    return losses, evaluate(ddp.module, images, boxes, labels)


def main():
    """Train on 64 pictures of digits."""
    scenes = DigitScenes("train", 64, seed=0, size=64, digits=(1, 2))
    batch = collate([scenes[k] for k in range(64)])
    with process_group():
        print(train(batch.images, batch.boxes, batch.labels))


if __name__ == "__main__":
    main()
