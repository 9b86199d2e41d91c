"""What only notebook 15, RoI pooling: the rule, reads."""
