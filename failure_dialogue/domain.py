"""A ROS domain of its own for each graph on this machine, and how a second terminal finds the running one."""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from failure_dialogue.errors import ConfigError, SetupError

#: 0 is left to whoever sets nothing; above 101 the ports of a domain may clash with the system's own.
DOMAINS = range(1, 102)


@dataclass
class DomainClaim:
    """A claimed domain: nobody else who asks here gets it until release(), or until this process ends."""

    domain_id: int
    _file: IO[str]

    def release(self) -> None:
        """Give the domain back."""
        self._file.close()


def claim_domain(purpose: str) -> DomainClaim:
    """Claim the lowest free domain for `purpose` ("sim", "test"); SetupError when all are taken.

    The system frees a claim when its process ends, however it ends.
    """
    folder = _folder()
    folder.mkdir(mode=0o700, exist_ok=True)
    for domain_id in DOMAINS:
        # Not inherited by child processes, which could outlive the claim.
        file = open(folder / f"{domain_id}", "a+", encoding="utf-8")  # noqa: SIM115
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            continue
        file.seek(0)
        file.truncate()
        json.dump({"purpose": purpose, "pid": os.getpid()}, file)
        file.flush()
        return DomainClaim(domain_id, file)
    raise SetupError(f"all {len(DOMAINS)} ROS domains are claimed in {folder}; end some of the graphs or "
                     "tests that run, or set ROS_DOMAIN_ID yourself")


def claimed_domains(purpose: str) -> list[int]:
    """The domains claimed for `purpose` at this moment by processes of this user."""
    found = []
    for domain_id in DOMAINS:
        with suppress(FileNotFoundError, ValueError), open(_folder() / f"{domain_id}") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                if json.load(file).get("purpose") == purpose:
                    found.append(domain_id)
    return found


def join_running_graph() -> int | None:
    """Set ROS_DOMAIN_ID to that of the one graph started by `failure-dialogue sim`; the id, or None.

    A ROS_DOMAIN_ID that is set already is kept. None: nothing runs, and ROS's own default holds. SetupError
    when several graphs run and nothing says which is meant.
    """
    stated = os.environ.get("ROS_DOMAIN_ID")
    if stated:
        if not stated.isdecimal():
            raise ConfigError(f"ROS_DOMAIN_ID is {stated!r}; give a number from 0 to 101")
        return int(stated)
    running = claimed_domains("sim")
    if not running:
        return None
    if len(running) > 1:
        raise SetupError(f"simulations run in the ROS domains {', '.join(map(str, running))}; "
                         f"say which: ROS_DOMAIN_ID={running[0]} failure-dialogue ...")
    set_domain(running[0])
    return running[0]


def set_domain(domain_id: int) -> None:
    """Put this process and its children into the domain, with discovery kept on this machine."""
    os.environ["ROS_DOMAIN_ID"] = str(domain_id)
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")


def _folder() -> Path:
    return Path(tempfile.gettempdir()) / f"failure_dialogue_domains_{os.getuid()}"
