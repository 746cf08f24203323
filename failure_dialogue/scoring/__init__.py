"""Metrics and tables, the only room that may read what really happened."""
