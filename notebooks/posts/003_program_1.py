# 代码演示
from torch import nn
import torch


class Model(nn.Module):
    def __init__(self):
        super(Model, self).__init__()
        pass

    def forward(self, x1, x2):
        # implementation details
        return x1, x2


if __name__ == '__main__':
    import os
    os.environ['CUDA_VISIBLE_DEVICES'] = '1,2'
    x1 = torch.randn((10, 3, 128, 128))
    x2 = torch.randn((1, 100, 200))
    model = Model()
    dp = nn.DataParallel(model)
    y1, y2 = dp(x1, x2)
    y3, y4 = model(x1, x2)
    print(torch.__version__)
    print('y1: {}, y2:{}'.format(y1.shape, y2.shape))
    print('y3: {}, y4:{}'.format(y3.shape, y4.shape))
