"""What each notebook asks before it runs: `nbNN.QUESTIONS` belongs to `notebooks/NN_*.ipynb`, in reading order."""
