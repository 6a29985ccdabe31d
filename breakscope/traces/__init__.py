"""What a job left behind, TORCH_TRACE files or TORCH_LOGS text, made into the events of a live scan."""
