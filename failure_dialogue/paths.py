"""Where the files that ship with the package lie: in a checkout, a colcon install or a pip install."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from failure_dialogue.errors import ConfigError

_PACKAGE = Path(__file__).resolve().parent


def _share_candidates() -> list[Path]:
    candidates = [_PACKAGE.parent]
    for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep):
        if prefix:
            candidates.append(Path(prefix) / "share" / "failure_dialogue")
    candidates.append(Path(sys.prefix) / "share" / "failure_dialogue")
    return candidates


def config_dir() -> Path:
    """The folder with failures.yaml, the costs and one parameter file per deployment."""
    for base in _share_candidates():
        if (base / "config" / "failures.yaml").is_file():
            return base / "config"
    tried = ", ".join(str(base / "config") for base in _share_candidates())
    raise ConfigError(f"config/failures.yaml was found in none of: {tried}; install the package again")


def config_file(name: str) -> Path:
    """Path of one file in config_dir(); ConfigError names the file when it is not there."""
    path = config_dir() / name
    if not path.is_file():
        raise ConfigError(f"no file {name!r} in {config_dir()}; the files there are: "
                          + ", ".join(sorted(p.name for p in config_dir().iterdir())))
    return path


def models_dir() -> Path:
    """The folder with the ONNX models that ship with the package."""
    return _PACKAGE / "models"


def cache_dir() -> Path:
    """Where what is built for this machine goes (the scene cache); made when missing."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    path = base / "failure_dialogue"
    path.mkdir(parents=True, exist_ok=True)
    return path
