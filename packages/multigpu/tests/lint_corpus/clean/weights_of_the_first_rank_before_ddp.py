import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("nccl")
local = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local)
net = torch.nn.Linear(8, 2).cuda()
if dist.get_rank() == 0:
    net.load_state_dict(torch.load("pretrained.pt", map_location="cpu"))
model = DDP(net, device_ids=[local])  # DDP sends rank 0's weights to all
opt = torch.optim.Adam(model.parameters())
