def train_one_epoch(net, data, opt, loss_fn, device="cpu"):
    right = seen = 0
    for x, y in data:
        x, y = x.to(device), y.to(device)
        out = net(x)
        loss_fn(out, y).backward()
        opt.step()
        opt.zero_grad()
        right += (out.argmax(1) == y).sum().item()  # BUG FL009
        seen += len(y)
    return right / seen
