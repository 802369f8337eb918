"""Where flows on Spark begin: each function in a file of its name."""
