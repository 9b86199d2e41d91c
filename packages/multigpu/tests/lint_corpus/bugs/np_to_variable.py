"""The helper of a 2017 Faster R-CNN that brings blobs to the GPU."""
import numpy as np
import torch
from torch.autograd import Variable


def blob_to_variable(blob, is_cuda=True, dtype=torch.FloatTensor):
    v = Variable(torch.from_numpy(blob).type(dtype))
    if is_cuda:
        v = v.cuda()  # BUG FL001
    return v


def scale_blob(blob, factor):
    return np.asarray(blob) * factor
