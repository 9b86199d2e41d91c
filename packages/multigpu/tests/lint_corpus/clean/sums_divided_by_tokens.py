import torch.nn.functional as F


def train(model, loader, opt, steps):
    """The sum of the losses, divided by all tokens when the step is due."""
    tokens = 0
    for i, (x, y) in enumerate(loader):
        loss = F.cross_entropy(model(x.cuda()).flatten(0, 1), y.cuda().flatten(), reduction="sum")
        loss.backward()
        tokens += y.numel()
        if (i + 1) % steps == 0:
            for p in model.parameters():
                p.grad.div_(tokens)
            opt.step()
            opt.zero_grad()
            tokens = 0


def plain(model, loader, opt, sched):
    for i, (x, y) in enumerate(loader):
        opt.zero_grad()
        loss = F.cross_entropy(model(x.cuda()), y.cuda())
        loss.backward()
        opt.step()
        if i % 10 == 0:
            sched.step()
