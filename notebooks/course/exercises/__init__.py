"""The exercises of each notebook: `nbNN.EXERCISES` belongs to `notebooks/NN_*.ipynb`."""
