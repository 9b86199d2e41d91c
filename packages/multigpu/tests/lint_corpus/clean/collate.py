import torch


def collate(batch):
    images, boxes = zip(*batch)
    height, width = max(i.shape[1] for i in images), max(i.shape[2] for i in images)
    padded = torch.zeros(len(images), 3, height, width)
    for row, image in zip(padded, images):
        row[:, : image.shape[1], : image.shape[2]].copy_(image)
    counts = torch.tensor([len(b) for b in boxes])
    return padded, torch.cat(boxes), counts
