"""A ROS domain of its own for each graph on this machine, and how a second terminal finds the running one.

A claim is a pair of bound abstract Unix sockets: they belong to the network namespace, as the traffic of a
domain does, so containers on the host's network and other users count too; and they go with their process.
"""

from __future__ import annotations

import os
import re
import socket
from dataclasses import dataclass
from pathlib import Path

from failure_dialogue.errors import ConfigError, SetupError

#: 0 is left to whoever sets nothing; above 101 the ports of a domain may clash with the system's own.
DOMAINS = range(1, 102)

_NAME = "failure_dialogue/domain"


@dataclass
class DomainClaim:
    """A claimed domain: nobody else who asks here gets it until release(), or until this process ends."""

    domain_id: int
    _sockets: tuple[socket.socket, ...]

    def release(self) -> None:
        """Give the domain back."""
        for held in self._sockets:
            held.close()


def claim_domain(purpose: str) -> DomainClaim:
    """Claim the lowest free domain for `purpose` ("sim", "test"); SetupError when all are taken."""
    for domain_id in DOMAINS:
        held = _bind(f"{_NAME}/{domain_id}")
        if held is not None:
            label = _bind(f"{_NAME}/{domain_id}/{purpose}")
            return DomainClaim(domain_id, (held,) if label is None else (held, label))
    raise SetupError(f"all {len(DOMAINS)} ROS domains are claimed by running graphs and tests; end some of "
                     "them, or set ROS_DOMAIN_ID yourself")


def claimed_domains(purpose: str) -> list[int]:
    """The domains claimed for `purpose` at this moment on this machine."""
    sockets = Path("/proc/net/unix").read_text()
    return sorted(int(found) for found in re.findall(rf" @{_NAME}/(\d+)/{purpose}$", sockets, re.MULTILINE))


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


def _bind(name: str) -> socket.socket | None:
    """An abstract socket of this name, or None where somebody has it."""
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        bound.bind(f"\0{name}")
    except OSError:
        bound.close()
        return None
    return bound
