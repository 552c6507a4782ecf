"""The rows of the bench, a module per group. What a row is: row.py."""
