"""Operators and sources that run one flow after another has completed or failed."""
