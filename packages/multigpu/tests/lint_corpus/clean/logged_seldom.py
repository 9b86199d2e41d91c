def train(model, loader, optimizer, criterion, writer, log_every=50):
    running = 0
    for step, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.detach()
        if step % log_every == 0:
            writer.add_scalar("loss", loss.item(), step)
    return running.item() / len(loader)
