import pytorch_lightning as pl
import torch
import torch.nn.functional as F


class GAN(pl.LightningModule):
    def training_step(self, batch, batch_idx):
        images, _ = batch
        z = torch.randn(images.shape[0], 64)  # BUG FL002
        fake = self.generator(z)
        return F.softplus(self.discriminator(fake)).mean()
