"""Lighter meshes and textures for the scene cache: software rendering is bound by the vertex count."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

import cv2
import fast_simplification
import mujoco
import numpy as np
from scipy.spatial import cKDTree

#: Faces kept of a visual mesh. The basket is thin wicker and falls apart with so few.
FACES = 1500
FACES_OF = {"basket_vis": 12000}
TEXTURE_SIZE = 512


class AssetStore:
    """A folder of mesh and texture files named by their content, shared by all scenes of one cache."""

    def __init__(self, folder: Path):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._made: dict[tuple, Path] = {}

    def put(self, name: str, content: bytes) -> Path:
        """Store the bytes under a name made of `name`'s stem, a hash and its suffix; atomic."""
        stem, suffix = os.path.splitext(os.path.basename(name))
        path = self.folder / f"{stem}-{hashlib.sha256(content).hexdigest()[:16]}{suffix}"
        part = path.with_name(f"{path.name}.{os.getpid()}.part")
        part.write_bytes(content)
        part.replace(path)
        return path

    def mesh(self, file: str, faces: int | None) -> Path:
        """The mesh with at most so many faces (None: as it is)."""
        key = (file, faces)
        if key not in self._made:
            lighter = decimated_obj(file, faces) if faces else None
            self._made[key] = (self.put(file, Path(file).read_bytes()) if lighter is None
                               else self.put(Path(file).stem + ".obj", lighter.encode()))
        return self._made[key]

    def texture(self, file: str, size: int = TEXTURE_SIZE) -> Path:
        """The image with neither side longer than `size` pixels."""
        key = (file, size)
        if key not in self._made:
            self._made[key] = self.put(Path(file).stem + ".png", smaller_png(file, size))
        return self._made[key]


def lighten(spec: mujoco.MjSpec, assets: AssetStore, faces_of: Mapping[str, int] = FACES_OF) -> None:
    """Drop what no geom uses; take the rest from the store, visual meshes decimated, textures made smaller.

    Meshes that take part in contacts are copied unchanged, so the physics stays LIBERO's.
    """
    geoms = [geom for geom in spec.geoms if geom.type == mujoco.mjtGeom.mjGEOM_MESH]
    colliding = {geom.meshname for geom in geoms if geom.contype or geom.conaffinity}
    visual = {geom.meshname for geom in geoms}
    for mesh in list(spec.meshes):
        if mesh.name not in visual:
            spec.delete(mesh)
        elif mesh.name in colliding:
            mesh.file = str(assets.mesh(mesh.file, None))
        else:
            mesh.file = str(assets.mesh(mesh.file, faces_of.get(Path(mesh.file).stem, FACES)))
            mesh.content_type = ""  # LIBERO names a type that may no longer be the file's
    materials = {geom.material for geom in spec.geoms}
    textures = set()
    for material in list(spec.materials):
        if material.name in materials:
            textures.update(material.textures)
        else:
            spec.delete(material)
    for texture in list(spec.textures):
        if texture.file and texture.name in textures:
            texture.file = str(assets.texture(texture.file))
        elif texture.type != mujoco.mjtTexture.mjTEXTURE_SKYBOX:
            spec.delete(texture)


def smaller_png(file: str, size: int) -> bytes:
    """The image as an RGB PNG with neither side longer than `size` pixels."""
    image = cv2.imread(file, cv2.IMREAD_COLOR)
    if image is None:
        raise ValueError(f"{file} cannot be read as an image")
    shrink = size / max(image.shape[:2])
    if shrink < 1:
        shape = [max(1, round(side * shrink)) for side in image.shape[1::-1]]
        image = cv2.resize(image, shape, interpolation=cv2.INTER_AREA)
    return cv2.imencode(".png", image)[1].tobytes()


def decimated_obj(file: str, faces: int) -> str | None:
    """The mesh as OBJ text with about `faces` faces, texture coordinates kept; None when it has no more."""
    vertices, triangles, uv, uv_triangles = _read(file)
    if len(triangles) <= faces:
        return None
    # Scans come with every triangle apart; decimation needs the shared edges.
    welded, index = np.unique(vertices.round(7), axis=0, return_inverse=True)
    joined = index.reshape(-1)[triangles]
    whole = ((joined[:, 0] != joined[:, 1]) & (joined[:, 1] != joined[:, 2]) & (joined[:, 0] != joined[:, 2]))
    points, kept = fast_simplification.simplify(welded.astype(np.float32), joined[whole].astype(np.int32),
                                                target_count=faces, agg=5)
    lines = [f"v {x:.6f} {y:.6f} {z:.6f}" for x, y, z in points]
    if uv is None:
        lines += [f"f {a + 1} {b + 1} {c + 1}" for a, b, c in kept]
    else:
        corners = _carry_uv(points[kept], vertices[triangles], uv[uv_triangles])
        # OBJ counts v from the bottom of the image, MuJoCo from its top.
        lines += [f"vt {u:.6f} {1.0 - v:.6f}" for u, v in corners.reshape(-1, 2)]
        lines += [f"f {a + 1}/{k + 1} {b + 1}/{k + 2} {c + 1}/{k + 3}"
                  for k, (a, b, c) in zip(range(0, 3 * len(kept), 3), kept, strict=True)]
    return "\n".join(lines) + "\n"


def _read(file: str) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Vertices (n, 3), faces (m, 3), image coordinates (k, 2) and their faces (m, 3), as read by MuJoCo."""
    spec = mujoco.MjSpec()
    spec.add_mesh(name="mesh", file=file, inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL)
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname="mesh", contype=0, conaffinity=0)
    model = spec.compile()
    # The compiler moves a mesh to its centre and principal axes; undo that.
    rotation = np.zeros(9)
    mujoco.mju_quat2Mat(rotation, model.mesh_quat[0])
    vertices = model.mesh_vert.astype(float) @ rotation.reshape(3, 3).T + model.mesh_pos[0]
    if model.mesh_texcoordnum[0] == 0:
        return vertices, model.mesh_face.copy(), None, None
    return vertices, model.mesh_face.copy(), model.mesh_texcoord.astype(float), model.mesh_facetexcoord.copy()


def _carry_uv(new: np.ndarray, old: np.ndarray, old_uv: np.ndarray) -> np.ndarray:
    """Texture coordinates (n, 3, 2) for new triangles (n, 3, 3), from old ones (m, 3, 3) with uv (m, 3, 2).

    Each new triangle takes the affine map of the nearest old triangle that faces the same way (the two sides
    of a thin wall lie close together but are different parts of the image), so no triangle spans two parts.
    """
    normals = _normals(old)
    _, near = cKDTree(old.mean(axis=1)).query(new.mean(axis=1), k=min(16, len(old)))
    near = near.reshape(len(new), -1)
    same_side = np.einsum("nc,nkc->nk", _normals(new), normals[near]) > 0.3
    chosen = near[np.arange(len(new)), same_side.argmax(axis=1)]  # the nearest when none faces the same way
    triangle, image = old[chosen], old_uv[chosen]
    edge1, edge2 = triangle[:, 1] - triangle[:, 0], triangle[:, 2] - triangle[:, 0]
    gram = np.stack([np.stack([(edge1 * edge1).sum(1), (edge1 * edge2).sum(1)], -1),
                     np.stack([(edge1 * edge2).sum(1), (edge2 * edge2).sum(1)], -1)], -2)
    gram += 1e-18 * np.eye(2)
    offset = new - triangle[:, :1]
    right = np.stack([np.einsum("nkc,nc->nk", offset, edge1), np.einsum("nkc,nc->nk", offset, edge2)], -1)
    weights = np.clip(np.linalg.solve(gram[:, None], right[..., None])[..., 0], -8, 8)
    return (image[:, :1] + weights[..., :1] * (image[:, 1:2] - image[:, :1])
            + weights[..., 1:] * (image[:, 2:] - image[:, :1]))


def _normals(triangles: np.ndarray) -> np.ndarray:
    cross = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    return cross / np.maximum(np.linalg.norm(cross, axis=1, keepdims=True), 1e-20)
