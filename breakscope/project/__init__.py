"""What a repository says: its configuration, what it knows already, its comments, and the verdicts."""
