"""Possible graph breaks, read off the source: no torch, no execution, no proof.

    files --extract--> facts of each, cached --graph--> what is likely compiled --present--> possible breaks

A scan knows; lint guesses. It says how sure it is ("likely" or "possible"), and counts and costs nothing.
"""
