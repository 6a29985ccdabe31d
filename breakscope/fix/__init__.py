"""Rewrites that are proved: rules propose, the proof decides, an overlay or a patch applies."""
