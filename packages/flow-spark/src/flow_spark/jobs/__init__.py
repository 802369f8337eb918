"""A run of stages as one Spark job, from the source of its rows to the reader of its items."""
