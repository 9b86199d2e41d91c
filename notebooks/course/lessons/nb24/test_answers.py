"""Answers to the exercises of notebook 24: right ones in an unusual form, and wrong ones that are nearly right."""

import torch
from answers import all_right, all_wrong


def loop_over_chunks(out, x, groups):
    out = out.clone()
    for part in out.chunk(groups, dim=1):
        part += x
    return out


def trained_branches(pack_blocks, branch):
    """No drawn numbers: a few steps of training change every tensor."""
    blocks = [branch() for _ in range(2)]
    for block in blocks:
        optimizer = torch.optim.SGD(block.parameters(), 0.5)
        for _ in range(3):
            block(torch.randn(4, 8, 5, 5, dtype=torch.float64)).square().mean().backward()
            optimizer.step()
    packed, x = pack_blocks(blocks).eval(), torch.randn(4, 8, 5, 5, dtype=torch.float64)
    for block, part in zip(blocks, packed(x).chunk(2, dim=1), strict=True):
        assert torch.allclose(block.eval()(x), part)


def by_name(pack_blocks, branch):
    """No forward at all: the tensors are compared, and every one of them is drawn."""
    blocks = [branch() for _ in range(4)]
    for block in blocks:
        for tensor in block.state_dict().values():
            if tensor.is_floating_point():
                tensor.normal_()
    for name, tensor in pack_blocks(blocks).state_dict().items():
        if tensor.ndim:
            torch.testing.assert_close(tensor, torch.cat([block.state_dict()[name] for block in blocks]))


def returns_the_answer(pack_blocks, branch):
    blocks = [branch() for _ in range(2)]
    x = torch.randn(1, 8, 3, 3, dtype=torch.float64)
    return torch.allclose(pack_blocks(blocks)(x), torch.cat([block(x) for block in blocks], 1))


def seeded_before_each(pack_blocks, branch):
    blocks = []
    for _ in range(3):
        torch.manual_seed(0)
        blocks.append(branch())
        for tensor in blocks[-1].state_dict().values():
            if tensor.is_floating_point():
                tensor.uniform_(0.5, 1.5)
    packed, x = pack_blocks(blocks).eval(), torch.randn(1, 8, 3, 3, dtype=torch.float64)
    torch.testing.assert_close(packed(x), torch.cat([block.eval()(x) for block in blocks], 1))


RIGHT = [
    ("24.add_shortcut", loop_over_chunks),
    (
        "24.add_shortcut",
        lambda out, x, g: (out.view(len(x), g, *x.shape[1:]) + x[:, None].expand(-1, g, -1, -1, -1)).reshape(out.shape),
    ),
    ("24.check_packing", trained_branches),
    ("24.check_packing", by_name),
]
WRONG = [  # with the name of the mistake, None where it has none
    ("24.add_shortcut", lambda out, x, groups: out + x.repeat(1, groups, 1, 1), "copies of x"),
    ("24.add_shortcut", lambda out, x, groups: out.unflatten(1, (groups, -1)).add_(x.unsqueeze(1)).flatten(1, 2), None),
    ("24.check_packing", returns_the_answer, "never fails"),
    ("24.check_packing", seeded_before_each, "copies of one branch"),
]

test_right_in_an_unusual_form = all_right(RIGHT)
test_nearly_right_is_wrong = all_wrong(WRONG)
