"""The methods of `Flow` that other packages execute: one class a package.

They are here so that editors and type checkers know them, and so that one that is called says which
package it needs. A package is imported when the first method of one of its modules is called.
"""
