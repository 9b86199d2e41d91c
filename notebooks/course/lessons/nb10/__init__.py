"""What only notebook 10, Sharding: FSDP2, reads."""
