"""The agent of one arm of a benchmark: its steps, its kernels, and what they return."""
