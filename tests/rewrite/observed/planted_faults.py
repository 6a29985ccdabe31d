"""Faults to be planted in a proof, to see that the judge notices: each makes the wrong form of what it gets."""
