"""The columns and rows that stages need, found out without running the stages.

The columns and rows that are left out are certainly not needed; others may not be needed, either.
"""
