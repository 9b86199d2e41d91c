import torch

from course.kit import post_002
from course.lessons.nb24.branches import agreement, trained_blocks
from frcnn_lite.layers import pack_state_dicts


def test_each_of_the_three_comparisons_can_fail():
    config = post_002.BottleneckConfig(4, 2, 4)
    batches = torch.randn(3, 3, 4, 5, 5, dtype=torch.float64)
    blocks = trained_blocks(config, 3, batches)
    grouped = post_002.Bottleneck(config, groups=3).double()
    right = pack_state_dicts([block.state_dict() for block in blocks])

    def with_state(state, training):
        grouped.load_state_dict(state)
        for module in (grouped, *blocks):
            module.train(training)
        return agreement(blocks, grouped, batches[0], pack_state_dicts)

    assert with_state(right, training=False) == (True, True, True)
    assert with_state(right | {"conv2.weight": right["conv2.weight"].flip(0)}, training=True)[:2] == (False, False)
    assert with_state(right | {"bn2.running_mean": right["bn2.running_mean"] + 1}, training=True) == (True, True, False)
