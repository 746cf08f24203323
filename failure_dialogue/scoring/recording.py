"""Writing a rosbag2 (mcap) from serialised messages, in a thread of its own with a bounded queue."""

from __future__ import annotations

import os
import queue
import shutil
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rosbags.interfaces import Connection, Nodetype, Qos
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from failure_dialogue.errors import ConfigError

#: The metadata version of ROS 2 Jazzy's rosbag2, which Kilted reads too.
BAG_VERSION: Literal[9] = 9
_CHECK_PERIOD_S = 0.5
_STOP = None


def share_folder(package: str) -> Path:
    """The share folder of an installed ROS package; LookupError when it is in none of the prefixes.

    The prefixes are those of AMENT_PREFIX_PATH, and sys.prefix, where ROS from wheels lies.
    """
    prefixes = [p for p in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if p] + [sys.prefix]
    for prefix in prefixes:
        folder = Path(prefix) / "share" / package
        if folder.is_dir():
            return folder
    raise LookupError(f"no share/{package} in {', '.join(prefixes)}")


class Definitions:
    """Message definitions read from installed packages, each with all that it contains.

    share_of: name of a ROS package -> its share folder (raises LookupError where it is not installed).
    Taking the installed text, not a copy, makes schema and type hash those of the publisher.
    """

    def __init__(self, share_of: Callable[[str], Path] = share_folder) -> None:
        self._share_of = share_of
        self.store: Typestore = get_typestore(Stores.EMPTY)

    def load(self, msgtype: str) -> None:
        """Read the definition of e.g. 'std_msgs/msg/Header'; ConfigError when there is none to read."""
        if msgtype in self.store.fielddefs:
            return
        found: dict = {}
        self._collect(msgtype, found)
        self.store.register(found)

    def _collect(self, msgtype: str, found: dict) -> None:
        if msgtype in self.store.fielddefs or msgtype in found:
            return
        parts = msgtype.split("/")
        if len(parts) != 3 or parts[1] != "msg":
            raise ConfigError(f"{msgtype} is no plain message type; parts of actions and services are "
                              "not recorded")
        try:
            text = (self._share_of(parts[0]) / "msg" / f"{parts[2]}.msg").read_text(encoding="utf-8")
            found.update(get_types_from_msg(text, msgtype))
        except (OSError, LookupError) as error:
            raise ConfigError(f"the definition of {msgtype} cannot be read ({error}); "
                              f"install the package {parts[0]} with its .msg files") from error
        for _, field in found[msgtype][1]:
            kind, description = field
            while kind in (Nodetype.ARRAY, Nodetype.SEQUENCE):
                kind, description = description[0]
            if kind == Nodetype.NAME:
                self._collect(description, found)


@dataclass(frozen=True)
class Limits:
    """max_bytes: size of the bag at which recording ends (0: none); min_free_bytes: room left on the disk;
    queue_bytes: what may wait to be written before messages are dropped."""

    max_bytes: int = 0
    min_free_bytes: int = 256 << 20
    queue_bytes: int = 32 << 20


@dataclass(frozen=True)
class Progress:
    """What has become of the messages so far. ended: why recording ended, empty while it goes on;
    broken: whether it ended by an error, so that the bag may lack its index."""

    written: int
    dropped: int
    bytes_taken: int
    ended: str
    broken: bool


class BagRecording:
    """One bag being written.

    Messages are handed over from any one thread and written by another, so that a slow disk never holds up
    the caller: beyond queue_bytes they are dropped and counted. A full disk, the size limit or a write
    error ends the recording and shows in progress(); nothing raises after the start.
    """

    def __init__(self, path: Path, definitions: Definitions, limits: Limits, compress: bool) -> None:
        self.path = Path(path)
        self._definitions, self._limits = definitions, limits
        self._queue: queue.SimpleQueue = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._waiting_bytes = self._bytes = self._written = self._dropped = 0
        self._ended, self._broken, self._closed = "", False, False
        self._connections: dict[str, Connection] = {}
        try:
            self._writer = Writer(self.path, version=BAG_VERSION, storage_plugin=StoragePlugin.MCAP)
            if compress:
                # Within the mcap's chunks: rosbag2 plays it without its compression plugin.
                self._writer.set_compression(CompressionMode.STORAGE, CompressionFormat.ZSTD)
            self._writer.open()
            if shutil.disk_usage(self.path).free < limits.min_free_bytes:
                self._end(f"the disk of {self.path} has less than {limits.min_free_bytes >> 20} MiB free")
        except Exception as error:
            raise ConfigError(f"no bag can be written to {self.path} ({error}); "
                              "choose another directory") from error
        self._thread = threading.Thread(target=self._run, name="bag writer", daemon=True)
        self._thread.start()

    def add_topic(self, topic: str, msgtype: str, offered: list[Qos]) -> None:
        """Announce a topic before its first message; ConfigError when its type has no readable definition."""
        self._definitions.load(msgtype)
        definition, _ = self._definitions.store.generate_msgdef(msgtype, ros_version=2)
        digest = self._definitions.store.hash_rihs01(msgtype)
        self._queue.put(("topic", topic, msgtype, definition, digest, offered))

    def write(self, topic: str, stamp_ns: int, data: bytes) -> None:
        """Hand over one serialised (CDR) message of an announced topic; dropped when the queue is full."""
        with self._lock:
            if self._ended or self._closed:
                return
            if self._waiting_bytes + len(data) > self._limits.queue_bytes:
                self._dropped += 1
                return
            self._waiting_bytes += len(data)
        self._queue.put((topic, stamp_ns, data))

    def progress(self) -> Progress:
        """Counts so far."""
        with self._lock:
            return Progress(self._written, self._dropped, self._bytes, self._ended, self._broken)

    def close(self, timeout_s: float = 1.5) -> bool:
        """Write what waits, the index and metadata.yaml. False when that took longer than timeout_s."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._queue.put(_STOP)
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _end(self, why: str, broken: bool = False) -> None:
        with self._lock:
            self._ended, self._broken = self._ended or why, self._broken or broken

    def _run(self) -> None:
        check_at = 0.0
        try:
            while (item := self._queue.get()) is not _STOP:
                if self._ended:
                    continue
                if item[0] == "topic":
                    _, topic, msgtype, definition, digest, offered = item
                    self._connections[topic] = self._writer.add_connection(
                        topic, msgtype, msgdef=definition, rihs01=digest, offered_qos_profiles=offered)
                    continue
                topic, stamp_ns, data = item
                self._writer.write(self._connections[topic], stamp_ns, data)
                with self._lock:
                    self._waiting_bytes -= len(data)
                    self._bytes += len(data)
                    self._written += 1
                if time.monotonic() > check_at:
                    check_at = time.monotonic() + _CHECK_PERIOD_S
                    self._check_room()
            if self._writer.storage is not None:
                self._writer.close()
        except Exception as error:  # a full disk among them; the robot goes on, its recording does not
            self._end(f"writing {self.path} failed: {type(error).__name__}: {error}", broken=True)
            with suppress(Exception):
                self._writer.abort()
            while self._queue.get() is not _STOP:
                pass

    def _check_room(self) -> None:
        size = sum(file.stat().st_size for file in self.path.iterdir())
        free = shutil.disk_usage(self.path).free
        if self._limits.max_bytes and size >= self._limits.max_bytes:
            self._end(f"the bag reached its size limit of {self._limits.max_bytes / 1e6:.0f} MB")
        elif free < self._limits.min_free_bytes:
            self._end(f"the disk of {self.path} has only {free >> 20} MiB free; make room and start again")
        if self._ended:
            self._writer.close()
