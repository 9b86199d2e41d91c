import torch
model = Net()
model = torch.nn.DataParallel(model, device_ids=[0, 1]).cuda()
class Net(torch.nn.Module):
    def forward(self, x):
        b = torch.zeros(x.shape[0], 1, device=torch.device('cuda:0'))  # BUG FL004
        return torch.cat([x, b], 1)
