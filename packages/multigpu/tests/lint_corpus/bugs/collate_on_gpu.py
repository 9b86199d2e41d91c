import torch


def pad_collate(batch):
    imgs, targets = zip(*batch)
    h = max(i.shape[1] for i in imgs)
    w = max(i.shape[2] for i in imgs)
    out = imgs[0].new_zeros(len(imgs), 3, h, w)
    for k, img in enumerate(imgs):
        out[k, :, : img.shape[1], : img.shape[2]] = img
    out = out.cuda(non_blocking=True)  # BUG FL001
    return out, list(targets)
