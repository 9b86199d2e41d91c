import numpy as np


def nms(dets, thresh):
    x1, y1, x2, y2, s = dets.T
    areas = (x2 - x1) * (y2 - y1)
    order = s.argsort()[::-1]
    keep = []
    while order.size:
        i = order[0].item()
        keep.append(i)
        w = np.maximum(0.0, np.minimum(x2[i], x2[order[1:]]) - np.maximum(x1[i], x1[order[1:]]))
        h = np.maximum(0.0, np.minimum(y2[i], y2[order[1:]]) - np.maximum(y1[i], y1[order[1:]]))
        order = order[1:][w * h / (areas[i] + areas[order[1:]] - w * h) <= thresh]
    return np.array(keep)
