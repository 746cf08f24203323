"""The robot's side of a failure: act, sense or ask, then repair, re-check and report."""
