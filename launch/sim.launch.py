"""The graph of `failure-dialogue sim` for a machine with ROS 2: ros2 launch failure_dialogue sim.launch.py"""

from __future__ import annotations

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction, Shutdown
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from failure_dialogue.graph import GraphNode, Human, SimOptions, sim_graph

MAX_RESTARTS = 3
RESTART_DELAY_S = 1.0
BOOLEAN = ["true", "false"]


def generate_launch_description() -> LaunchDescription:
    """Arguments, then the nodes of failure_dialogue.graph.sim_graph."""
    declare = DeclareLaunchArgument
    return LaunchDescription([
        declare("namespace", default_value="", description="Namespace of all nodes."),
        declare("use_sim_time", default_value="true", choices=BOOLEAN, description="Use simulated time."),
        declare("params_file", default_value="", description="ROS 2 parameter file for all nodes."),
        declare("autostart", default_value="true", choices=BOOLEAN,
                description="Configure and activate the nodes without a lifecycle manager."),
        declare("log_level", default_value="info", description="Log level of all nodes."),
        declare("use_respawn", default_value="true", choices=BOOLEAN,
                description=f"Start a node that died again, at most {MAX_RESTARTS} times."),
        declare("human", default_value=Human.SCRIPTED.value, choices=[h.value for h in Human],
                description="Who answers questions; console: you, with `ros2 run failure_dialogue "
                            "failure-dialogue talk` in a second terminal."),
        declare("record", default_value="", description="Folder for a rosbag2 of all topics; empty: none."),
        declare("real_time_factor", default_value="", description="1: real time, 0: as fast as it goes."),
        declare("seed", default_value="", description="Seed of scenes, noise and scripted answers."),
        OpaqueFunction(function=_nodes),
    ])


def _nodes(context: LaunchContext) -> list[Node]:
    def text(name: str) -> str:
        return LaunchConfiguration(name).perform(context)

    factor, seed = text("real_time_factor"), text("seed")
    options = SimOptions(
        human=Human(text("human")), record=text("record"), real_time_factor=float(factor) if factor else None,
        seed=int(seed) if seed else None, params_file=text("params_file"), namespace=text("namespace"),
        use_sim_time=text("use_sim_time") == "true", autostart=text("autostart") == "true",
        use_respawn=text("use_respawn") == "true", log_level=text("log_level"))
    return [_action(node, options) for node in sim_graph(options)]


def _action(node: GraphNode, options: SimOptions) -> Node:
    parameters = ([options.params_file] if options.params_file else []) + [dict(node.parameters)]
    return Node(
        package="failure_dialogue", executable=node.executable, name=node.name, namespace=options.namespace,
        parameters=parameters, arguments=["--ros-args", "--log-level", options.log_level], output="screen",
        additional_env={"PYTHONUNBUFFERED": "1"}, respawn=node.respawn, respawn_max_retries=MAX_RESTARTS,
        respawn_delay=RESTART_DELAY_S,
        on_exit=Shutdown(reason=f"{node.name} has ended") if node.ends_graph else None)
