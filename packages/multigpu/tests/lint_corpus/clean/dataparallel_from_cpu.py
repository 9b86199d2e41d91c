import torch
from torch import nn
from nets import Net

model = nn.DataParallel(Net().cuda(), device_ids=[0, 1])
x = torch.randn(8, 3, 32, 32)
y = model(x)
print(y.shape, nn.parallel.data_parallel(model.module, x, [0, 1]).shape)
