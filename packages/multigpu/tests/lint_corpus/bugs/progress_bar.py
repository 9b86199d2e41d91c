from tqdm import tqdm


def fit(model, loader, optimizer, criterion):
    bar = tqdm(loader)
    for x, y in bar:
        optimizer.zero_grad()
        losses = criterion(model(x.cuda(non_blocking=True)), y.cuda(non_blocking=True))
        loss = sum(losses.values())
        loss.backward()
        optimizer.step()
        bar.set_postfix({name: value.item() for name, value in losses.items()})  # BUG FL009
