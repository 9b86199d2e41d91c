import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))
model.cuda()
criterion = nn.CrossEntropyLoss().cuda()
optimizer = torch.optim.Adam(model.parameters())
loader = DataLoader(TensorDataset(torch.randn(32, 8), torch.randint(2, (32,))), batch_size=8)
for inputs, labels in loader:
    inputs, labels = inputs.cuda(non_blocking=True), labels.cuda(non_blocking=True)
    optimizer.zero_grad()
    criterion(model(inputs), labels).backward()
    optimizer.step()
