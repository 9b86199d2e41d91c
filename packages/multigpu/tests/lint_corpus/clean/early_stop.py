def fit(model, train_loader, valid_loader, optimizer, criterion, epochs, patience):
    best, waited = float("inf"), 0
    for epoch in range(epochs):
        for x, y in train_loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
        valid = validate(model, valid_loader, criterion)
        if valid.item() < best:
            best, waited = valid.item(), 0
        elif (waited := waited + 1) > patience:
            break
    return best
