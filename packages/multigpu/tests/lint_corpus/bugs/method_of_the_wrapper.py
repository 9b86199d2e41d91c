import torch
from torch import nn

from models import build_net


def evaluate(model, images):
    return model.decode(model(images))  # BUG FL012


def main(args):
    model = build_net(args)
    if torch.cuda.device_count() > 1:
        model = nn.DataParallel(model)
    model.cuda()
    print(model.num_classes, model.training)  # BUG FL012
    evaluate(model, args.images)
