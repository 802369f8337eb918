"""Runs the official TCK of Reactive Streams against this library's objects."""
