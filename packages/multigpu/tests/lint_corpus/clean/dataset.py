import numpy as np
import torch
from PIL import Image
from torch.utils.data import Dataset

MEAN = torch.tensor([0.485, 0.456, 0.406])[:, None, None]


class Pictures(Dataset):
    def __init__(self, files):
        self.files = files
        self.sizes = torch.zeros(len(files), 2)

    def __getitem__(self, index):
        array = np.asarray(Image.open(self.files[index]).convert("RGB"))
        image = torch.from_numpy(array.copy()).permute(2, 0, 1).float() / 255
        self.last = image
        return image - MEAN

    def __len__(self):
        return len(self.files)
