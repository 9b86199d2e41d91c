import matplotlib.pyplot as plt
import numpy as np


def show(images, boxes, path):
    fig, axes = plt.subplots(1, len(images))
    for axis, image, found in zip(axes, images.detach().cpu().numpy(), boxes):
        axis.imshow(np.transpose(image, (1, 2, 0)))
        for x1, y1, x2, y2 in found.tolist():
            axis.plot([x1, x2], [y1, y2])
    fig.savefig(path)
