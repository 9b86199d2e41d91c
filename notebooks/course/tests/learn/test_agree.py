"""Results are compared by their values, whatever holds them."""

import numpy as np
import torch

from course.kit.learn.agree import near, same_values


def test_values_are_compared_and_their_containers_are_not():
    assert same_values((1, [torch.tensor(2), np.int64(3)]), [1, (2, 3)])
    assert not same_values(1, True) and not same_values([2.0], [2]) and not same_values([1], [1, 2])
    assert near(torch.tensor([0.1, 3.0]), [0.1, 3]) and near(1 + 1e-9j, 1 + 0j)
    assert not near([0.1], [0.1001]) and not near(0.1 + 0j, 0.1) and not near([0.1], 0.1) and not near("0.1", 0.1)
