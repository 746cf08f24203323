"""From evidence to a distribution over causes."""
