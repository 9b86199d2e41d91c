import torch
from torch.utils.data import Dataset


class Windows(Dataset):
    def __init__(self, series, n):
        self.series, self.n = series, n

    def __len__(self):
        return len(self.series) - self.n

    def __getitem__(self, i):
        x = torch.tensor(self.series[i : i + self.n], dtype=torch.float32, device="cuda")  # BUG FL001
        return x, self.series[i + self.n]
