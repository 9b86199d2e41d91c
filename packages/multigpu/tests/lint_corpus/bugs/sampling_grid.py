import torch
class Up(torch.nn.Module):
    def forward(self, x):
        grid = torch.meshgrid(torch.linspace(-1, 1, x.size(2)), torch.linspace(-1, 1, x.size(3)))  # BUG FL002
        grid = torch.stack(grid, -1).unsqueeze(0).repeat(x.size(0), 1, 1, 1)
        return torch.nn.functional.grid_sample(x, grid)
