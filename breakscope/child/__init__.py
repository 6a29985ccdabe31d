"""Running the user's script in a child process, as Python itself would run it, with an agent inside."""
