"""Flows that are split: into groups, windows and buffers."""
