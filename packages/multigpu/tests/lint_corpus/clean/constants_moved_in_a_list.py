from torch import nn

from anchors import make_cells


class Anchors(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.cells = [make_cells(size) for size in sizes]

    def forward(self, feature):
        self.cells = [cell.to(feature.device) for cell in self.cells]
        return [cell + feature.new_zeros(4) for cell in self.cells]
