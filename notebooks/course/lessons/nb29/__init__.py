"""What only notebook 29, In-place errors: who wrote to my target?, reads."""
