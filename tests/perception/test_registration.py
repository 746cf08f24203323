"""Two stills of one scene are laid over each other; two of different scenes are not."""

import numpy as np
import pytest

from failure_dialogue.errors import EvidenceError
from failure_dialogue.perception.registration import MIN_INLIERS, register
from tests.fakes.tabletop import HEIGHT, WIDTH, still

EVERYWHERE = np.ones((HEIGHT, WIDTH), dtype=bool)


@pytest.mark.parametrize("shift", [(0.0, 0.0), (1.4, 1.4), (-2.0, 0.3), (0.5, -5.0)])
def test_shake_is_measured_to_a_tenth_of_a_pixel(shift):
    registration = register(still(seed=1), still(seed=2, shift_px=shift, exposure=1.1), EVERYWHERE)
    assert registration.inliers >= MIN_INLIERS
    moved = registration.matrix_px @ [320 + shift[0], 240 + shift[1], 1.0]
    assert moved == pytest.approx([320, 240], abs=0.1)


def test_the_same_pair_gives_the_same_answer():
    a, b = still(seed=1), still(seed=2, shift_px=(1.0, 0.5))
    assert np.array_equal(register(a, b, EVERYWHERE).matrix_px, register(a, b, EVERYWHERE).matrix_px)


def test_what_is_masked_out_does_not_carry_the_fit():
    background = EVERYWHERE.copy()
    background[140:340, 220:420] = False
    after = still((0.01, 0.0), seed=2)
    registration = register(still((0.0, 0.0), seed=1), after, background)
    assert registration.matrix_px @ [320, 240, 1.0] == pytest.approx([320, 240], abs=0.1)


def test_different_scenes_blur_and_darkness_are_refused():
    import cv2

    a = still(seed=1)
    with pytest.raises(EvidenceError, match="features agree"):
        register(a, np.ascontiguousarray(a[::-1, ::-1]), EVERYWHERE)
    with pytest.raises(EvidenceError, match="features agree"):
        register(a, cv2.GaussianBlur(a, (0, 0), 30), EVERYWHERE)
    with pytest.raises(EvidenceError, match="black"):
        register(a, (a * 0.03).astype(np.uint8), EVERYWHERE)
    with pytest.raises(EvidenceError, match="8 bits"):
        register(a, a.astype(float), EVERYWHERE)
