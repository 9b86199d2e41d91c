"""What only notebook 36 reads: pipelines by hand."""
