import torch


def main(args):
    torch.set_default_tensor_type("torch.cuda.FloatTensor")  # BUG FL003
    model = build(args)
    model.eval()
