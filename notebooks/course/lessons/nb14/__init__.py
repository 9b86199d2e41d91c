"""What only notebook 14, Proposals and NMS, reads."""
