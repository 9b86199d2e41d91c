"""RoI pooling with its output made first."""
import torch
from torch.autograd import Function


class RoIPool(Function):
    @staticmethod
    def forward(ctx, features, rois, size, scale):
        num_rois, channels = rois.size(0), features.size(1)
        output = torch.zeros(num_rois, channels, size, size)  # BUG FL002
        for index in range(num_rois):
            output[index] = features[int(rois[index, 0])].amax((1, 2))[:, None, None]
        ctx.save_for_backward(rois)
        return output
