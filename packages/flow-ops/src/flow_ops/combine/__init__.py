"""Operators and sources that bring several flows together."""
