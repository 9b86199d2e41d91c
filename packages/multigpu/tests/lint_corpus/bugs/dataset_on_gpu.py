import os

import torch
from PIL import Image
from torch.utils.data import Dataset


class VOCFolder(Dataset):
    def __init__(self, root, names, transform):
        self.root, self.names, self.transform = root, names, transform

    def __len__(self):
        return len(self.names)

    def __getitem__(self, i):
        path = os.path.join(self.root, "JPEGImages", self.names[i] + ".jpg")
        img = self.transform(Image.open(path).convert("RGB"))
        return img.cuda(), i  # BUG FL001
