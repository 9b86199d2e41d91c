"""What makes and keeps the notebooks; `python -m course TOOL` runs each."""
