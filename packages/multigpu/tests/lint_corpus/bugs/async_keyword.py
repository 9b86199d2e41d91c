import torch


def to_gpu(blobs):
    return [blob.cuda(async=True) for blob in blobs]  # BUG FL000 FL001
