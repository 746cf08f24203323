"""The independent measurement after a repair."""
