"""The agent of a recording run: what the expressions of a function evaluate to."""
