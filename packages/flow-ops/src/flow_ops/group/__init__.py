"""Operators that split a flow into groups, windows and buffers."""
