"""Stopping early without cheating: the order in which pairs are bought, and the bounds on them."""
