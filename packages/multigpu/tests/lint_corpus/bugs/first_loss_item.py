import torch


def fit(net, batches, opt, crit, max_steps):
    step = 0
    while step < max_steps:
        x, y = next(batches)
        out = net(x)
        loss = crit(out, y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        best = loss.item() if step == 0 else min(best, loss.item())  # BUG FL009
        step += 1
    return best
