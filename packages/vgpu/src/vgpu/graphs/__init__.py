"""CUDA graphs: a capture records the operators of a thread, and a replay computes them again."""
