import torch


def train_alone(model, loader, optimizer):
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(model(x), y)
        if torch.isnan(loss):
            continue
        loss.backward()
        optimizer.step()
