"""Runs the processes of a graph: prefixes their output, starts a dead one again, ends all together.

honcho brings the processes, the queue of their events and the prefixes; added here are bounded restarts, log
files, and the terminal for the one process that talks with the user.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from honcho.manager import SYSTEM_PRINTER_NAME, Manager
from honcho.printer import Message, Printer
from honcho.process import Popen, Process

#: How often a process is started again; when it ends once more, all end.
MAX_RESTARTS = 3
#: Who ran for so long has recovered: the restarts are counted anew.
STEADY_S = 60.0
#: How a node says that its parameters or files are at fault, which another start does not mend.
CONFIG_ERROR = 2

_RESTART_DELAY_S = 1.0
_POLL_S = 0.2
_TERM_LIMIT_S = 6.0  # from SIGTERM to SIGKILL

_LEVEL = re.compile(r"\[(DEBUG|INFO|WARN|ERROR|FATAL)\]")
_LOUD = re.compile(r"\[(WARN|ERROR|FATAL)\]|^error:|^Traceback ")


@dataclass(frozen=True)
class Job:
    """One process to run. `respawn`: start it again when it ends; `terminal`: it has the user's terminal."""

    name: str
    command: Sequence[str]
    respawn: bool = True
    terminal: bool = False


def run_jobs(jobs: Sequence[Job], log_dir: Path, env: Mapping[str, str], verbose: bool = False) -> int:
    """Run the jobs until one ends that is not started again, or Ctrl-C or SIGTERM; the exit status.

    The status is that of the job that ended first (128 + signal when a signal ended it), 130 after Ctrl-C and
    143 after SIGTERM. What a job prints goes to log_dir/NAME.log; warnings and errors, with `verbose` all of
    it, also to stderr behind the job's name. A terminal job has this process's stdin and stdout for its own.
    """
    log_dir.mkdir(parents=True, exist_ok=True)
    log = _Log(log_dir, verbose)
    manager = _Manager(log)
    for job in jobs:
        manager.add_job(job, env)
    try:
        manager.loop()
    finally:
        log.close()
    status = manager.returncode or 0
    return 128 - status if status < 0 else status


class _Log(Printer):
    """Every line into its process's file; those a user should see onto stderr, until the end has begun."""

    def __init__(self, log_dir: Path, verbose: bool) -> None:
        super().__init__(sys.stderr)
        self.ending = False
        self._log_dir, self._verbose = log_dir, verbose
        self._files: dict[str, IO[str]] = {}
        self._loud: dict[str, bool] = {}

    def write(self, message: Message) -> None:
        """Take one event of honcho's; its data is one line, bytes or text."""
        text = message.data.decode("utf-8", "replace") if isinstance(message.data, bytes) else message.data
        if message.name not in self._files:
            self._files[message.name] = open(self._log_dir / f"{message.name}.log", "w",  # noqa: SIM115
                                             encoding="utf-8", buffering=1)
        self._files[message.name].write(text if text.endswith("\n") else text + "\n")
        if self._verbose or (not self.ending and self._is_loud(message.name, text)):
            super().write(message._replace(data=text))

    def _is_loud(self, name: str, text: str) -> bool:
        if name == SYSTEM_PRINTER_NAME:
            return False
        if _LEVEL.search(text) or _LOUD.search(text):
            self._loud[name] = bool(_LOUD.search(text))
        return self._loud.get(name, True)  # a line without a level belongs to the one before it

    def close(self) -> None:
        for file in self._files.values():
            file.close()


class _Manager(Manager):
    """honcho's manager; processes end by a mark they watch, so that none is missed while it (re)starts."""

    def __init__(self, log: _Log) -> None:
        super().__init__(log)
        self._log, self._ending = log, multiprocessing.Event()

    def add_job(self, job: Job, env: Mapping[str, str]) -> None:
        self._process_ctor = lambda cmd, **options: _Process(job, self._ending, cmd, **options)
        self.add_process(job.name, shlex.join(["exec", *job.command]), env=dict(env))

    def terminate(self) -> None:
        self._log.ending = True
        self._ending.set()

    def kill(self) -> None:
        """Nothing: each process kills its child itself when the child does not end in time."""


class _Process(Process):
    """One job; lives in a process of its own, which honcho makes."""

    def __init__(self, job: Job, ending, cmd: str, **options) -> None:
        super().__init__(cmd, **options)
        self._job, self._ending = job, ending
        self._streams: dict[str, int] = {"stdin": subprocess.DEVNULL}
        if job.terminal:  # copies, because multiprocessing gives the process that runs the job another stdin
            self._streams = {"stdin": os.dup(0), "stdout": os.dup(1), "stderr": subprocess.PIPE}

    def run(self, events=None, ignore_signals: bool = False) -> None:
        """Run the job, again when it ends by itself, until it may not be started again or all end."""
        self._events = events
        for signum in (signal.SIGINT, signal.SIGTERM):  # not SIG_IGN, which the child would inherit
            signal.signal(signum, lambda *_: None)
        restarts = 0
        while True:
            started = time.monotonic()
            status = self._run_child()
            if self._ending.is_set() or not self._job.respawn:
                break
            if time.monotonic() - started > STEADY_S:
                restarts = 0
            if status == CONFIG_ERROR:
                self._send_message(f"[ERROR] {self.name} cannot run as it is configured; everything ends\n")
                break
            if restarts == MAX_RESTARTS:
                self._send_message(f"[ERROR] {self.name} ended {restarts + 1} times (now {_how(status)}); "
                                   "everything ends\n")
                break
            restarts += 1
            self._send_message(f"[WARN] {self.name} ended ({_how(status)}) and is started again, "
                               f"{restarts} of at most {MAX_RESTARTS} times\n")
            if self._ending.wait(_RESTART_DELAY_S):
                break
        self._send_message({"returncode": status}, type="stop")

    def _run_child(self) -> int:
        self._child = child = Popen(self.cmd, env=self.env, cwd=self.cwd, **self._streams)
        self._send_message({"pid": child.pid}, type="start")
        relay = threading.Thread(target=self._relay, args=(child.stdout or child.stderr,), daemon=True)
        relay.start()
        supervisor = multiprocessing.parent_process()
        while child.poll() is None:
            gone = supervisor is not None and not supervisor.is_alive()
            if self._ending.wait(_POLL_S) or gone:
                self._ending.set()
                self._signal_group(signal.SIGTERM)
                with suppress(subprocess.TimeoutExpired):
                    child.wait(_TERM_LIMIT_S)
                break
        self._signal_group(signal.SIGKILL)  # the child if it did not end, and what it left behind
        child.wait()
        relay.join(timeout=1.0)
        return child.returncode

    def _relay(self, stream: IO[bytes]) -> None:
        for line in iter(stream.readline, b""):
            self._send_message(line)
        stream.close()

    def _signal_group(self, signum: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child.pid, signum)


def _how(status: int) -> str:
    return f"exit status {status}" if status >= 0 else f"signal {signal.Signals(-status).name}"
