from torch import nn
from torch.cuda.amp import GradScaler

from detector import build_detector


def main(loader, optimizer):
    scaler = GradScaler()
    model = nn.DataParallel(build_detector(), device_ids=[0, 1])
    for images, targets in loader:
        losses = model(images, targets)
        loss = sum(loss for loss in losses.values())
        scaler.scale(loss).backward()  # BUG FL010
        scaler.step(optimizer)
        print(float(losses["boxes"]))  # BUG FL010
