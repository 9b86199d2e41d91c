"""Attention as the operators that CUDA would choose, computed by the CPU."""
