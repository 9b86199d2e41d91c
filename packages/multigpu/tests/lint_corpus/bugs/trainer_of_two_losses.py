from torch import nn


class Trainer:
    def __init__(self, model, optimizer):
        self.model = nn.DataParallel(model)
        self.optimizer = optimizer

    def step(self, batch):
        loss, auxiliary = self.model(**batch)
        loss = loss + 0.4 * auxiliary
        loss.backward()  # BUG FL010
        self.optimizer.step()
