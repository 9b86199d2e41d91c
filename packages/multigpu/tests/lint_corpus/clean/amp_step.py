import torch


def train_step(model, batch, optimizer, scaler, device):
    images, labels = (t.to(device, non_blocking=True) for t in batch)
    with torch.autocast("cuda", dtype=torch.float16):
        loss = torch.nn.functional.cross_entropy(model(images), labels)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    return loss.detach()
