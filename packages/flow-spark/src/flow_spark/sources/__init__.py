"""Sources on Spark: each function in a file of its name."""
