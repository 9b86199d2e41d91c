import torch
from accelerate import Accelerator
from accelerate.utils import gather_object


def train(model, optimizer, loader, evaluation):
    accelerator = Accelerator()
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x), y)
        accelerator.backward(loss)
        optimizer.step()
        if accelerator.is_main_process:
            losses = accelerator.gather(loss.detach())  # BUG FL017
            accelerator.log({"losses": losses})
    if accelerator.is_main_process:
        accelerator.wait_for_everyone()  # BUG FL017
        torch.save(accelerator.unwrap_model(model).state_dict(), "model.pt")


class Judge:
    def __init__(self, accelerator, metric):
        self.accelerator, self.metric = accelerator, metric

    def judge(self, model, loader):
        for x, y in loader:
            if self.accelerator.is_local_main_process:
                found = self.accelerator.gather_for_metrics((model(x).argmax(1), y))  # BUG FL017
                self.metric.add(*found)

    def names(self, mine):
        return gather_object(mine)


def report(accelerator, values):
    total = accelerator.reduce(values, reduction="sum")
    print(total)


def end(accelerator, values):
    if accelerator.is_main_process:
        report(accelerator, values)  # BUG FL017
