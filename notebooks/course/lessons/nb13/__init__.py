"""What only notebook 13, Anchors and targets, reads."""
