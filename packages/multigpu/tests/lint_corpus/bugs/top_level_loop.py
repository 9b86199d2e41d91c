import torch

model = torch.nn.Linear(3, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
history = []
for epoch in range(10):
    for x, y in batches:
        optimizer.zero_grad()
        loss = (model(x.cuda()) - y.cuda()).pow(2).mean()
        loss.backward()
        optimizer.step()
        history.append(loss.item())  # BUG FL009
        if loss.item() > 1e4:  # BUG FL009
            break
