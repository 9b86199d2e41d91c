"""Facts about CUDA that a CPU kernel does not know: they were recorded on a GPU, and a test asks them all again."""
