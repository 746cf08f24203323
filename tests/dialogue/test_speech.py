"""The voice never makes anybody wait and never fails; without a loudspeaker it says so."""

import sys
import time

from failure_dialogue.dialogue.speech import MAX_WAITING, Speaker, why_silent


def _speaker(tmp_path, seconds=0.0, **kwargs):
    script = tmp_path / "voice.py"
    script.write_text("import sys, time, pathlib\n"
                      f"f = pathlib.Path({str(tmp_path / 'heard')!r})\n"
                      f"time.sleep({seconds})\n"
                      "f.write_text((f.read_text() if f.exists() else '') + sys.argv[-1] + '\\n')\n")
    return Speaker([sys.executable, str(script)], silent_reason="", **kwargs)


def _wait_for(condition, limit_s=10.0):
    end = time.monotonic() + limit_s
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def _heard(tmp_path):
    path = tmp_path / "heard"
    return path.read_text().splitlines() if path.exists() else []


def test_sentences_are_spoken_in_order(tmp_path):
    speaker = _speaker(tmp_path)
    assert speaker.say("first") and speaker.say("-second, that begins with a dash")
    assert _wait_for(lambda: len(_heard(tmp_path)) == 2)
    assert _heard(tmp_path) == ["first", "-second, that begins with a dash"]
    speaker.close()


def test_saying_never_waits_and_drops_what_is_too_much(tmp_path):
    speaker = _speaker(tmp_path, seconds=20.0)
    start = time.monotonic()
    taken = [speaker.say(f"sentence {n}") for n in range(50)]
    assert time.monotonic() - start < 1.0
    assert 1 <= sum(taken) <= MAX_WAITING + 1
    speaker.close()
    assert time.monotonic() - start < 5.0
    assert not speaker.say("after the end")


def test_hush_breaks_off_and_speech_goes_on_afterwards(tmp_path):
    speaker = _speaker(tmp_path, seconds=1.0)
    speaker.say("broken off")
    speaker.say("forgotten")
    time.sleep(0.3)
    speaker.hush()
    speaker.say("after")
    assert _wait_for(lambda: _heard(tmp_path) == ["after"])
    speaker.close()


def test_a_voice_that_hangs_is_cut_off(tmp_path):
    speaker = _speaker(tmp_path, seconds=20.0, timeout_s=0.3)
    speaker.say("hangs")
    assert _wait_for(lambda: "0.3 s" in speaker.last_error)
    speaker.close()


def test_a_voice_that_is_not_there_is_a_reason_and_no_exception():
    speaker = Speaker(["no-such-voice-program"])
    assert speaker.silent_reason == "no-such-voice-program is not installed"
    assert not speaker.say("hello")
    speaker.close()


def test_a_voice_that_cannot_start_is_noted(tmp_path):
    speaker = Speaker([str(tmp_path / "gone")], silent_reason="")
    assert speaker.say("hello")
    assert _wait_for(lambda: "cannot be started" in speaker.last_error)
    speaker.close()


def test_without_a_sound_server_or_card_it_is_silent(monkeypatch, tmp_path):
    monkeypatch.setattr("failure_dialogue.dialogue.speech.glob", lambda pattern: [])
    monkeypatch.delenv("PULSE_SERVER", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert why_silent(sys.executable) == "there is no audio device"
    monkeypatch.setenv("PULSE_SERVER", "unix:/somewhere")
    assert why_silent(sys.executable) == ""
