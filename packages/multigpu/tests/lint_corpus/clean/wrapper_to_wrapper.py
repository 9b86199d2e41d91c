import torch
from torch import nn


def main(model, args):
    if args.pretrained:
        model.load_state_dict(torch.load(args.pretrained, map_location="cpu"))
    model = nn.DataParallel(model).cuda()
    if args.resume:
        model.load_state_dict(torch.load(args.resume, "cpu"))
    torch.save(model.state_dict(), args.resume)
    vocabulary = torch.load("vocab.pt")
    return vocabulary
