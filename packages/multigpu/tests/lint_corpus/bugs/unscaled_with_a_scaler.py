import torch
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel


def train_one_epoch(model, loader, optimizer, scaler, args):
    model = DistributedDataParallel(model, device_ids=[args.local_rank])
    model.train()
    optimizer.zero_grad(set_to_none=True)
    for step, batch in enumerate(loader, 1):
        with torch.autocast("cuda", dtype=torch.float16):
            logits = model(batch["input"].cuda(non_blocking=True))
            loss = F.cross_entropy(logits, batch["label"].cuda(non_blocking=True))
        scaler.scale(loss).backward()  # BUG FL022 FL023
        if step % args.gradient_accumulation_steps == 0 or step == len(loader):
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad(set_to_none=True)
