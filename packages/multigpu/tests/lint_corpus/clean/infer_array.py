import numpy as np
import torch


def segment(model, image: np.ndarray, device):
    x = torch.from_numpy(image).permute(2, 0, 1)[None].float().to(device)
    with torch.inference_mode():
        logits = model(x)
    return logits.argmax(1)[0].cpu().numpy().astype(np.uint8)
