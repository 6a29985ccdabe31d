"""Branches on tensors as code without a branch: places get values under a predicate, exits become masks."""
