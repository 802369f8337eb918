"""Sinks in Spark, or in memory as a table: each function in a file of its name."""
