"""The simulated robot: LIBERO scenes in MuJoCo behind the same topics as a real arm."""
