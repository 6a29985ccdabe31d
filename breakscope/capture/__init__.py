"""Running a user's script under observation: parent side, child side, and what passes between."""
