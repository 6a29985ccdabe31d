"""Our own process: it starts the user's, reads what that writes, and outlives it. Never imports torch."""
