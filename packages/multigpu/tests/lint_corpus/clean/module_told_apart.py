import torch
from torch import nn


def bare(model):
    return model.module if isinstance(model, nn.DataParallel) else model


def main(model, images):
    if torch.cuda.device_count() > 1:
        model = nn.DataParallel(model)
    model.train()
    model.note = "seen"
    print(model.note, model.device_ids if hasattr(model, "device_ids") else None)
    core = getattr(model, "module", model)
    core.decode(images)
    bare(model).decode(images)
    torch.save(core.state_dict(), "a.pt")


def other(model, images, parallel):
    if parallel:
        model = nn.DataParallel(model)
    if parallel:
        model.module.decode(images)
    else:
        model.decode(images)


def third(model, images):
    model = nn.DataParallel(model)
    try:
        net = model.module
    except AttributeError:
        net = model
    return net.decode(images)
