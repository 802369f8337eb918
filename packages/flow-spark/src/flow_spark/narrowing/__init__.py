"""The columns and rows that stages need of what they read, found out without running them.

Each answer is one-sided: what is left out is certainly not needed.
"""
