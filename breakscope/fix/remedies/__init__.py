"""Remedies for recompiles: what to change so that a guard does not fail again, tried before it is said.

``propose`` finds changes for a cause, ``prove`` runs the script with one, ``engine`` puts both together.
"""
