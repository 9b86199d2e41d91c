"""What happens when an operator meets virtual tensors, and what autograd and autocast add to it."""
