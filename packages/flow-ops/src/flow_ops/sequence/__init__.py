"""Operators and sources that run one flow after another: when it has completed, or has failed."""
