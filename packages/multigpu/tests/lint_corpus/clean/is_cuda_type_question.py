import torch


def describe(x):
    if isinstance(x, torch.cuda.FloatTensor):
        return "float on a GPU"
    return "elsewhere" if x.type() != "torch.cuda.HalfTensor" else "half on a GPU"
