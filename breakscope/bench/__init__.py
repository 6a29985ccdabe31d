"""Benchmarks of the user's script: arms in child processes, kernels, and what to choose."""
