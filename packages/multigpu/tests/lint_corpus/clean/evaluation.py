import numpy as np
import torch


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    correct, scores = 0, []
    for images, labels in loader:
        logits = model(images.to(device))
        correct += (logits.argmax(1).cpu() == labels).sum().item()
        scores.append(logits.softmax(1).cpu().numpy())
    return correct / len(loader.dataset), np.concatenate(scores)
