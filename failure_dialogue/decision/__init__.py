"""From measured accuracy and stated costs to act, sense, ask or hold."""
