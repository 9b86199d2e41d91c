"""Programs that PyTorch compiles, exports or traces."""
