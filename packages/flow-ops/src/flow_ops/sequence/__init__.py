"""Operators and sources that run one flow after another: because it has ended, or has failed."""
