import torch


def roi_indices(rois, count):
    with torch.cuda.device(rois.get_device()):
        indices = torch.arange(count).cuda()
    return rois[indices]
