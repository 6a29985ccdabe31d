"""Possible graph breaks, read off the source: no torch, no execution, no proof.

    files ──facts──▶ what each file holds (one file at a time, cached) ──graph──▶ what is likely compiled ──▶ findings

A scan knows; lint guesses. It says how sure it is ("likely" or "possible"), and never counts or costs anything.
"""
