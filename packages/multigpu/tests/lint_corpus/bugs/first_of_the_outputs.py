import torch


def train(model, batches):
    for batch in batches:
        outputs = model(**batch)
        loss = outputs[0] / 4
        loss.backward()  # BUG FL010


def main(net, batches):
    if torch.cuda.device_count() > 1:
        net = torch.nn.DataParallel(net)
    train(net, batches)
