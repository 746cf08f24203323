"""Thin ROS 2 shells round the pure modules; the only room that imports rclpy."""
