"""The post's classifier over groups, complete: one Linear per class, graph attention, one residual score per class."""

import re
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from course.kit.post_002.graph_attention import GraphAttention
from course.kit.post_002.residual_linear import GroupedResidualLinear, ResidualLinearBlock
from frcnn_lite.layers import GroupLinear


@dataclass(frozen=True)
class ClassHeadConfig:
    """Sizes of a head: classes of each group (ragged, 0 allowed), channels of a group's and of a class's features."""

    nclasses_per_group: tuple[int, ...]
    group_channels: int
    class_channels: int
    reduction: int = 2

    @property
    def n_groups(self) -> int:
        return len(self.nclasses_per_group)

    @property
    def n_classes(self) -> int:
        return sum(self.nclasses_per_group)


class SerialClassHead(nn.Module):
    """The head as the post had it before: two loops over classes; (B, G, Cg) -> (B, n_classes) logits."""

    def __init__(self, config: ClassHeadConfig) -> None:
        super().__init__()
        c = self.config = config
        self.class_fcs = nn.ModuleList(nn.Linear(c.group_channels, c.class_channels) for _ in range(c.n_classes))
        self.gat = GraphAttention(c.class_channels)
        self.fcs = nn.ModuleList(
            nn.Sequential(
                ResidualLinearBlock(c.class_channels, c.reduction, c.class_channels), nn.Linear(c.class_channels, 1)
            )
            for _ in range(c.n_classes)
        )

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim != 3 or x.shape[1:] != (self.config.n_groups, self.config.group_channels):
            wanted = f"(B, {self.config.n_groups}, {self.config.group_channels})"
            raise ValueError(f"`x` must be {wanted}, got {tuple(x.shape)}")
        class_fcs = iter(self.class_fcs)
        rows = [next(class_fcs)(x[:, i]) for i, n in enumerate(self.config.nclasses_per_group) for _ in range(n)]
        features = self.gat(torch.stack(rows, dim=1))
        return torch.cat([fc(features[:, i]) for i, fc in enumerate(self.fcs)], dim=1)


class ClassHead(nn.Module):
    """The same head without a loop; (B, G, Cg) -> (B, n_classes) logits."""

    def __init__(self, config: ClassHeadConfig) -> None:
        super().__init__()
        c = self.config = config
        self.class_fcs = GroupLinear(c.n_groups, c.nclasses_per_group, c.group_channels, c.class_channels)
        self.gat = GraphAttention(c.class_channels)
        self.fcs = nn.Sequential(
            GroupedResidualLinear(c.n_classes, c.class_channels, c.reduction, c.class_channels),
            GroupLinear(c.n_classes, (1,) * c.n_classes, c.class_channels, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.fcs(self.gat(self.class_fcs(x))).squeeze(2)

    @classmethod
    def from_serial(cls, serial: SerialClassHead) -> "ClassHead":
        """The loop-free head with the weights of the serial one."""
        head = cls(serial.config).to(serial.gat.linear.weight)
        head.load_state_dict(stack_state_dict(serial.state_dict()))
        return head.train(serial.training)

    def to_serial(self) -> SerialClassHead:
        """The serial head with the weights of this one."""
        serial = SerialClassHead(self.config).to(self.gat.linear.weight)
        serial.load_state_dict(unstack_state_dict(self.state_dict()))
        return serial.train(self.training)


def stack_state_dict(serial: dict[str, Tensor]) -> dict[str, Tensor]:
    """State of `ClassHead` from that of `SerialClassHead`: `fcs.0.weight`, `fcs.1.weight`... become one `fcs.weight`.

    Lists lie behind the first number of a key; keys without one, such as those of `gat`, are kept.
    """
    lists: dict[str, list[Tensor]] = {}
    for key, value in serial.items():
        lists.setdefault(re.sub(r"^(class_fcs|fcs)\.\d+\.", r"\1.", key), []).append(value)
    return {key: values[0] if key.startswith("gat.") else torch.stack(values) for key, values in lists.items()}


def unstack_state_dict(stacked: dict[str, Tensor]) -> dict[str, Tensor]:
    """State of `SerialClassHead` from that of `ClassHead`, the reverse of `stack_state_dict`; tensors are copies."""
    serial = {}
    for key, value in stacked.items():
        if key.startswith("gat."):
            serial[key] = value.clone()
            continue
        name, rest = key.split(".", 1)
        serial |= {f"{name}.{i}.{rest}": row.clone() for i, row in enumerate(value)}
    return serial
