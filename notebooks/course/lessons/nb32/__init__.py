"""What only notebook 32, export and deploy, reads."""
