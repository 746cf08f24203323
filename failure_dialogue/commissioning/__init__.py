"""Training, measuring and recording what the diagnosers are worth."""
