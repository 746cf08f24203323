"""One small module a robot: joint names, gripper units, kinematics."""
