"""Runs random pipelines in this library and in RxJava 3, and compares the results."""
