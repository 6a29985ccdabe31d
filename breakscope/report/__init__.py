"""What a report is: its records, its file, and where it is kept. Imports nothing above it."""
