import torch
def main(cfg):
    device = cfg.device or ('cuda' if torch.cuda.is_available() else 'cpu')
    net = Net().to(device)
    opt = torch.optim.AdamW(net.parameters(), lr=cfg.lr)
    for epoch in range(cfg.epochs):
        net.train()
        for x, y in train_loader:
            x, y = x.to(device), y.to(device)
            opt.zero_grad(); loss = net.loss(x, y); loss.backward(); opt.step()
        net.eval()
        with torch.no_grad():
            acc = sum((net(x.to(device)).argmax(1) == y.to(device)).float().sum().item() for x, y in val_loader)
        print(epoch, acc)
