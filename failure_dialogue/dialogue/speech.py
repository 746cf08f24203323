"""Says sentences aloud with espeak-ng where there is an audio device; else keeps silent and says why."""

from __future__ import annotations

import os
import queue
import shutil
import subprocess
import threading
from collections.abc import Sequence
from glob import glob
from pathlib import Path

#: A sentence that takes longer than this to speak is cut off (a blocked sound server must not block us).
TIMEOUT_S = 30.0
#: Sentences that wait their turn; more are dropped, since late speech only confuses.
MAX_WAITING = 3


def audio_device() -> str:
    """The way to a loudspeaker ('' when there is none): an ALSA playback device or a sound server."""
    playback = glob("/dev/snd/pcm*p")
    if playback:
        return playback[0]
    if os.environ.get("PULSE_SERVER"):
        return os.environ["PULSE_SERVER"]
    runtime = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    for name in ("pulse/native", "pipewire-0"):
        if (Path(runtime) / name).exists():
            return str(Path(runtime) / name)
    return ""


def why_silent(program: str = "espeak-ng") -> str:
    """Why nothing can be said aloud; '' when it can."""
    if not shutil.which(program):
        return f"{program} is not installed"
    return "" if audio_device() else "there is no audio device"


class Speaker:
    """Speaks one sentence after the other without ever making the caller wait or fail.

    command is what speaks the text given as its last argument; silent_reason says why nothing is heard (''
    when something is). A sentence that cannot be spoken sets last_error and is dropped.
    """

    def __init__(self, command: Sequence[str] = ("espeak-ng", "-s", "150"), silent_reason: str | None = None,
                 timeout_s: float = TIMEOUT_S) -> None:
        self.silent_reason = why_silent(command[0]) if silent_reason is None else silent_reason
        self.last_error = ""
        self._command = tuple(command)
        self._timeout_s = timeout_s
        self._waiting: queue.Queue[str | None] = queue.Queue(MAX_WAITING)
        self._current: subprocess.Popen | None = None
        self._lock = threading.Lock()
        self._closed = False
        self._thread: threading.Thread | None = None
        if not self.silent_reason:
            self._thread = threading.Thread(target=self._run, name="speaker", daemon=True)
            self._thread.start()

    def say(self, text: str) -> bool:
        """Queue a sentence; False when it will not be heard (silent, closed, or too many wait)."""
        if self.silent_reason or self._closed or not text.strip():
            return False
        try:
            self._waiting.put_nowait(text)
        except queue.Full:
            return False
        return True

    def hush(self) -> None:
        """Break off what is being said and forget what waits (somebody answers, or says stop)."""
        while True:
            try:
                self._waiting.get_nowait()
            except queue.Empty:
                break
        with self._lock:
            if self._current is not None:
                self._current.kill()

    def close(self) -> None:
        """Fall silent for good; returns within a second."""
        self._closed = True
        self.hush()
        if self._thread is not None:
            self._waiting.put(None, timeout=1.0)
            self._thread.join(timeout=1.0)

    def _run(self) -> None:
        while (text := self._waiting.get()) is not None:
            try:
                with self._lock:
                    if self._closed:
                        return
                    # "--" keeps a text that begins with a dash from being read as an option.
                    voice = subprocess.Popen([*self._command, "--", text], stdin=subprocess.DEVNULL,
                                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                    self._current = voice
                try:
                    voice.wait(self._timeout_s)
                except subprocess.TimeoutExpired:
                    self.last_error = f"{self._command[0]} did not finish within {self._timeout_s:g} s"
                    voice.kill()
                    voice.wait()
            except (OSError, ValueError) as error:
                self.last_error = f"{self._command[0]} cannot be started: {error}"
            finally:
                with self._lock:
                    self._current = None
