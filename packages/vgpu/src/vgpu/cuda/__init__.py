"""`torch.cuda` itself: what it answers, the oldest names of its tensors, and what is refused by name."""
