import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def loop(model, loader, opt, rank):
    model = DDP(model, device_ids=[rank])
    for batch in loader:
        try:
            out = model(batch)
            out.loss.backward()
            opt.step()
        except RuntimeError as e:  # BUG FL032
            if "out of memory" in str(e):
                print("| WARNING: ran out of memory, skipping batch")
                for p in model.parameters():
                    p.grad = None
                torch.cuda.empty_cache()
            else:
                raise e
        opt.zero_grad()
