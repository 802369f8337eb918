"""A run of stages as one Spark job, from where its rows come from to who gets its items."""
