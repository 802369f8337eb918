"""Flows whose functions are coroutine functions."""
