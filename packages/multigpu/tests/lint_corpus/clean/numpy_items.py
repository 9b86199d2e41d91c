import numpy as np


def bins(values, count):
    edges = np.linspace(values.min(), values.max(), count)
    found = []
    for edge in edges:
        found.append(edge.item())
    return found
