import torch


def load(path, model, rank):
    device = f"cuda:{rank}"
    model.load_state_dict(torch.load(path, map_location=device))
    weights = torch.load(path, map_location="cpu")
    extra = torch.load(path, map_location={"cuda:0": f"cuda:{rank}"})
    return weights, extra
