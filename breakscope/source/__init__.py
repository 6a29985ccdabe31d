"""Facts about code, from its text alone: each question has one home, and is answered once for each module."""
