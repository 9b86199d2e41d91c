import torch
import torch.distributed as dist


@torch.no_grad()
def evaluate(model, loader, device):
    right = torch.zeros(2, device=device)
    for x, y in loader:
        right[0] += (model(x.to(device)).argmax(1) == y.to(device)).sum()
        right[1] += len(y)
    dist.all_reduce(right)
    return (right[0] / right[1]).item()


def main(args, model, loader, epochs, device):
    for epoch in range(epochs):
        if dist.get_rank() == 0:
            accuracy = evaluate(model, loader, device)  # BUG FL017
            print(f"epoch {epoch}: {accuracy:.3f}")
