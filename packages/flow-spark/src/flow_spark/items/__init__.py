"""Conversions between Python items, Arrow batches and Spark schemas."""
