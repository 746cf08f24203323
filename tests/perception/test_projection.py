"""From the arm's base frame to pixels."""

import math

import numpy as np
import pytest

from failure_dialogue.errors import EvidenceError
from failure_dialogue.perception.projection import FrameTree, Region, StaticFrame, camera_from_info
from tests.fakes.tabletop import CAMERA

HALF = math.sqrt(0.5)


def test_frames_are_chained_through_their_common_parent():
    tree = FrameTree()
    tree.update([StaticFrame("world", "base", (-0.6, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0)),
                 # Turned left by 90 degrees.
                 StaticFrame("world", "mast", (1.0, 0.0, 0.5), (0.0, 0.0, HALF, HALF)),
                 StaticFrame("mast", "camera", (0.0, 0.0, 0.25), (0.0, 0.0, 0.0, 1.0))])
    in_camera = tree.between("camera", "base") @ [0.6, 0.0, 0.0, 1.0]  # the world's origin
    assert in_camera == pytest.approx([0.0, 1.0, -0.75, 1.0])
    back = tree.between("base", "camera") @ in_camera
    assert back == pytest.approx([0.6, 0.0, 0.0, 1.0])


def test_a_frame_stated_again_replaces_the_older_statement():
    tree = FrameTree()
    for x in (1.0, 2.0):
        tree.update([StaticFrame("world", "base", (x, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))])
    assert tree.between("world", "base")[0, 3] == 2.0


def test_frames_that_do_not_join_are_named():
    tree = FrameTree()
    tree.update([StaticFrame("world", "base", (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))])
    with pytest.raises(EvidenceError, match="'panda_link0'.*'world'.*/tf_static"):
        tree.between("base", "panda_link0")
    tree.update([StaticFrame("base", "world", (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))])
    with pytest.raises(EvidenceError, match="ring"):
        tree.between("base", "camera")
    with pytest.raises(EvidenceError, match="no unit quaternion"):
        tree.update([StaticFrame("world", "x", (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0))])


def test_a_point_on_the_table_is_seen_where_geometry_says():
    # One metre under a camera with a focal length of 500 px, 10 cm right of its axis and 20 cm up the image.
    assert CAMERA.project(np.array([0.1, 0.2, 0.0])) == pytest.approx(np.array([[370.0, 140.0]]))
    assert CAMERA.project(np.array([0.1, 0.2, 0.5])) == pytest.approx(np.array([[420.0, 40.0]]))


def test_a_region_holds_the_cube_and_little_more():
    region = CAMERA.region(np.array([0.0, 0.0, 0.05]), 0.1)
    # The cube's top, at 0.9 m, is the widest: 0.1 m are 55.6 px there.
    assert (region.left, region.right, region.top, region.bottom) == (292, 348, 212, 268)
    assert region.area_px == 56 * 56
    assert Region(0, 0, 10, 10).grown(5, 640, 480) == Region(0, 0, 15, 15)


def test_places_out_of_view_are_refused():
    with pytest.raises(EvidenceError, match="not in the camera's view"):
        CAMERA.region(np.array([0.9, 0.0, 0.0]), 0.1)
    with pytest.raises(EvidenceError, match="behind the camera"):
        CAMERA.region(np.array([0.0, 0.0, 2.0]), 0.1)
    assert CAMERA.region(np.array([0.63, 0.0, 0.0]), 0.1).right == 640  # cut, but most of it is seen


def test_a_camera_without_calibration_is_refused():
    with pytest.raises(EvidenceError, match="calibrated"):
        camera_from_info(640, 480, [0.0] * 9, np.eye(4))
