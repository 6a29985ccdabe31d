"""All that runs in the user's process, and what it and our process say to each other."""
