"""The columns that stages need of the rows they read, found out without running them.

Each answer is one-sided: a column is left out only if no stage can read it.
"""
