"""Reads what a job left behind: TORCH_TRACE files and TORCH_LOGS text, made into the events of a live scan."""
