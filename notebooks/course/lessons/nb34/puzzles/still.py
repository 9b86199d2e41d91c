"""Under FSDP2 every tensor of the net has to move in a step, equally on all ranks, and each rank keeps its share
only.
"""

from course.kit.learn.puzzle import wrong
from course.lessons.nb34 import detector
from course.lessons.nb34.cases import agree as agree
from course.lessons.nb34.cases import cases_of, instead

hints = (
    "Which tensors does the optimizer step? Are they those that get the gradient?",
    "`fully_shard` replaces the parameters of the net. Ask for them after it, in `shard`.",
    "`return net, torch.optim.SGD(net.parameters(), lr=lr)` as the last line, and no list of parameters from before.",
)
still = detector.shard
cases = cases_of("still")


@wrong
@instead(
    (
        "    for part in (net.body, net.head):\n"
        "        fully_shard(part)\n"
        "    fully_shard(net)\n"
        "    return net, torch.optim.SGD(net.parameters(), lr=lr)\n",
        "    groups = [{'params': list(part.parameters())} for part in (net.body, net.head)]\n"
        "    for part in (net.body, net.head):\n"
        "        fully_shard(part)\n"
        "    fully_shard(net)\n"
        "    return net, torch.optim.SGD(groups, lr=lr)\n",
    ),
)
def parameters_from_before():
    """this is what an optimizer gives whose parameters were asked for before `fully_shard` replaced them."""


@wrong
@instead(
    (
        "    for part in (net.body, net.head):\n"
        "        fully_shard(part)\n"
        "    fully_shard(net)\n"
        "    return net, torch.optim.SGD(net.parameters(), lr=lr)\n",
        "    net.cuda()\n    return net, torch.optim.SGD(net.parameters(), lr=lr)\n",
    ),
)
def nothing_is_sharded():
    """this is what a net gives that is not sharded: each rank holds all weights, and trains alone."""


@wrong
@instead(
    (
        "    for part in (net.body, net.head):\n        fully_shard(part)\n    fully_shard(net)\n",
        "    fully_shard(net.body)\n    net.cuda()\n",
    ),
)
def a_part_is_left_out():
    """this is what a net gives of which a part is not sharded. The optimizer gets tensors beside DTensors."""


@wrong
@instead(
    ("    fully_shard(net)\n", "    fully_shard(net)\n    net.set_requires_gradient_sync(False)\n"),
)
def gradients_are_not_sent():
    """this is what a net gives whose gradients are never sent: FSDP2 then keeps them on each rank, outside of the
    shards, and the optimizer finds none.
    """
