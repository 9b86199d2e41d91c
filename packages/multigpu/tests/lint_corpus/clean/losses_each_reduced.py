from torch import nn


def step(model, batch, several):
    trainer = nn.DataParallel(model) if several else model
    losses = trainer(batch)
    for name in losses:
        losses[name] = losses[name].mean()
    total = losses["boxes"] + losses["names"]
    total.backward()


def other(model, batch, args):
    if args.gpus > 1:
        model = nn.DataParallel(model)
    loss = model(batch)
    if args.gpus > 1:
        shown = loss.mean().item()
    else:
        shown = loss.item()
    return shown
