import torch
from torch import nn

ids = [0, 1]
model = nn.Linear(3, 3)
model = nn.DataParallel(model, device_ids=ids, output_device=0)
model.to(f"cuda:{ids[0]}")
out = model(torch.randn(8, 3, device=f"cuda:{ids[0]}"))
print(out.sum().item())
