"""Planted judges through the very functions that a run uses: what was planted, what was found."""
