"""Requests, tokens, calls in flight and dollars, shared by all workers of a run.

Pure parts: nothing here imports Ray. Times are seconds on a clock that is passed in.
"""
