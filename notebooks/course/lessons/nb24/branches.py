"""What notebook 24 compares: a convolution with its gradients, trained branches, and a packed module with them."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course.kit import post_002

State = dict[str, Tensor]


def with_gradients(x: Tensor, weight: Tensor, groups: int) -> tuple[Tensor, Tensor, Tensor]:
    """The output of a convolution, and the gradients of the sum of its squares: of the input, and of the weight."""
    x, weight = x.detach().requires_grad_(), weight.detach().requires_grad_()
    y = F.conv2d(x, weight, padding=1, groups=groups)
    of_x, of_weight = torch.autograd.grad(y.square().sum(), (x, weight))
    return y.detach().cpu(), of_x.cpu(), of_weight.cpu()


def trained_blocks(config: post_002.BottleneckConfig, count: int, batches: Tensor) -> list[nn.Module]:
    """Blocks in float64, each with a step of training on every batch, so that no two tensors are still equal."""
    blocks: list[nn.Module] = [post_002.Bottleneck(config).double() for _ in range(count)]
    for block in blocks:
        optimizer = torch.optim.SGD(block.parameters(), lr=0.5)
        for batch in batches:
            block(batch).square().mean().backward()
            optimizer.step()
    return blocks


def agreement(
    blocks: Sequence[nn.Module], grouped: nn.Module, batch: Tensor, pack: Callable[[list[State]], State]
) -> tuple[bool, bool, bool]:
    """Whether outputs agree, gradients, and all that the modules keep after the forward.

    pack: packs the gradients and the states of the blocks, which are compared with those of `grouped`.
    """
    modules = (*blocks, grouped)
    for module in modules:
        module.zero_grad()
    outputs = torch.cat([block(batch) for block in blocks], dim=1), grouped(batch)
    (outputs[0].square().sum() + outputs[1].square().sum()).backward()
    gradients = [{name: p.grad for name, p in module.named_parameters() if p.grad is not None} for module in modules]
    states = [module.state_dict() for module in modules]
    return torch.allclose(*outputs, rtol=1e-5), _packed_agree(gradients, pack), _packed_agree(states, pack)


def _packed_agree(found: list[State], pack: Callable[[list[State]], State]) -> bool:
    *of_blocks, of_grouped = found
    packed = pack(of_blocks)
    return packed.keys() == of_grouped.keys() and all(
        torch.allclose(of_grouped[name], tensor, rtol=1e-5) for name, tensor in packed.items()
    )
