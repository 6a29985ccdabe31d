"""Many reports at once: reduced to one through any executor, and written as tables."""
