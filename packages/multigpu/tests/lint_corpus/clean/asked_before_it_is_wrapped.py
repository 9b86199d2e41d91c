import torch

from models import build_net

net = build_net()
transform = torch.nn.Sequential(net.normalize, net.resize)
net = torch.nn.DataParallel(net)
net.eval()
