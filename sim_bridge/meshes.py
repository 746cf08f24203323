"""Lighter meshes and textures for the scene cache: software rendering is bound by the vertex count."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import mujoco


class AssetStore:
    """A folder of mesh and texture files named by their content, shared by all scenes of one cache."""

    def __init__(self, folder: Path):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def put(self, name: str, content: bytes) -> Path:
        """Store the bytes under a name made of `name`'s stem, a hash and its suffix; atomic."""
        stem, suffix = os.path.splitext(os.path.basename(name))
        path = self.folder / f"{stem}-{hashlib.sha256(content).hexdigest()[:16]}{suffix}"
        part = path.with_name(f"{path.name}.{os.getpid()}.part")
        part.write_bytes(content)
        part.replace(path)
        return path


def lighten(spec: mujoco.MjSpec, assets: AssetStore) -> set[str]:
    """Point every mesh and texture file of the spec to a copy in the store; returns the names used."""
    used = set()
    for thing in [*spec.meshes, *spec.textures]:
        if thing.file:
            path = assets.put(thing.file, Path(thing.file).read_bytes())
            thing.file = str(path)
            used.add(path.name)
    return used
