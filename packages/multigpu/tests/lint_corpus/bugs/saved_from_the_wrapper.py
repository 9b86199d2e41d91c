import torch
from torch import nn

from models import build_net


def main(args):
    model = build_net(args)
    if args.resume:
        model.load_state_dict(torch.load(args.resume, map_location="cpu"))
    model = nn.DataParallel(model).cuda()
    for epoch in range(args.epochs):
        train(model, epoch)
        torch.save(model.state_dict(), args.resume)  # BUG FL013
