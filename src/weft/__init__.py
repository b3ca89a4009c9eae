"""Weft: unmodified CUDA programs on slices of GPUs that are somewhere else."""

__version__ = "0.1.0"
