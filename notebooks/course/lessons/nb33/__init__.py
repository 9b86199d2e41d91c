"""What only notebook 33, Testing multi-GPU code without GPUs, reads."""
