import torch


def resume(path, model, rank):
    state = torch.load(path, map_location="cuda:0")  # BUG FL004
    model.load_state_dict(state["model"])
    return state["epoch"]
