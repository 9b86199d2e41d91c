import torch
def run(model, loader, opt):
    losses = []
    for i, batch in enumerate(loader):
        loss = model(batch)
        loss.backward()
        opt.step()
        losses.append(float(loss))  # BUG FL009
        print(f"step {i}: {loss.item():.4f}")  # BUG FL009
