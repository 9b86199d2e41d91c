import torch
from torch import nn


def load(model, path):
    weights = torch.load(path, map_location="cpu")
    model.load_state_dict({name.removeprefix("module."): value for name, value in weights.items()})


def main(model, path):
    load(model, path)
    model = nn.DataParallel(model)
    torch.save(model.state_dict(), path)
