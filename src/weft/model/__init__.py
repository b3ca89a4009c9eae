"""The words of the pool as types: GPU, slice, request, lease, path. Values only; no I/O."""
