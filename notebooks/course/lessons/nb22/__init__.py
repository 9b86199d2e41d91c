"""What only notebook 22, Your own boxes, reads."""
