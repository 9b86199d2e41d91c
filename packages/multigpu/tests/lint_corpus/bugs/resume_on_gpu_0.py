import torch


def resume(model, optimizer, path):
    state = torch.load(path, map_location="cuda:0")  # BUG FL004
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["epoch"]
