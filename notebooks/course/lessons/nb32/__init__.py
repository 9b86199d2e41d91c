"""What only notebook 32, Export and deploy: the file that computes something else, reads."""
