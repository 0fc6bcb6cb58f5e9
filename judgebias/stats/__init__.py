"""Statistics on counts: numbers in, numbers out, and `None` where a figure is not available."""
