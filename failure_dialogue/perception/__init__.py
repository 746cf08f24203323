"""Seeing: registration of images, shared by diagnosis and re-check."""
