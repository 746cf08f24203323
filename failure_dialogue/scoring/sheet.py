"""A sheet on which a figure is laid out in inches, and writing it to a file that is sharp and small."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image

from failure_dialogue.errors import ConfigError

#: Twice the pixels of a picture shown at 900 pixels, for 9 inches.
DPI = 180
FORMATS = (".png", ".svg", ".pdf", ".jpg")
SMALL, TEXT = 7.5, 8.0  # points; at a width of 900 pixels a point is 1.4 pixels
INK, GREY, FAINT = "#222222", "#6b6b6b", "#d9d9d9"


class Sheet:
    """A figure of a given width; places are in inches from the upper left corner."""

    def __init__(self, width_in: float) -> None:
        self.width_in = width_in
        self.height_in = 1.0
        self.figure = Figure(figsize=(width_in, 1.0), dpi=DPI, facecolor="white")
        self._renderer = FigureCanvasAgg(self.figure).get_renderer()

    def set_height(self, height_in: float) -> None:
        """To be called before anything is placed."""
        self.height_in = height_in
        self.figure.set_size_inches(self.width_in, height_in)

    def axes(self, left: float, top: float, width: float, height: float, label: str, **limits: Any) -> Axes:
        """Axes at a place in inches; the label is their name for whoever looks for them."""
        return self.figure.add_axes((left / self.width_in, 1 - (top + height) / self.height_in,
                                     width / self.width_in, height / self.height_in), label=label, **limits)

    def write(self, left: float, top: float, text: str, **style: Any) -> Text:
        """Text whose upper left corner (upper right with ha="right") is at a place in inches."""
        return self.figure.text(left / self.width_in, 1 - top / self.height_in, text, va="top",
                                **{"fontsize": TEXT, "color": INK, **style})

    def width_of(self, text: str, size: float = TEXT, **style: Any) -> float:
        """Width of a line of text in inches."""
        probe = self.figure.text(0, 0, text, fontsize=size, **style)
        width = probe.get_window_extent(self._renderer).width / DPI
        probe.remove()
        return float(width)

    def fit(self, text: str, width_in: float, lines: int, size: float = TEXT, **style: Any) -> list[str]:
        """The text in so many lines of so much width at most, with … where it had to be cut."""
        rows: list[str] = []
        row = ""
        for word in text.split():
            longer = f"{row} {word}".strip()
            if not row or self.width_of(longer, size, **style) <= width_in:
                row = longer
                continue
            rows.append(row)
            row = word
        rows.append(row)
        if len(rows) > lines:
            rows = rows[:lines]
            rows[-1] += " …"
        for i, line in enumerate(rows):
            while len(line) > 2 and self.width_of(line, size, **style) > width_in:
                kept = line.rstrip(" …")
                line = (kept.rpartition(" ")[0] or kept[:-1]) + " …"
            rows[i] = line
        return rows


def check(path: Path) -> None:
    """ConfigError when no picture can be written to this path, before any work is done for it."""
    if path.suffix.lower() not in FORMATS:
        raise ConfigError(f"{path} has the ending {path.suffix!r}; it must be one of {', '.join(FORMATS)}")
    if not path.parent.is_dir():
        raise ConfigError(f"the folder {path.parent} does not exist; make it, or choose another one")


def write(figure: Figure, path: Path) -> None:
    """Write the picture in the format of its suffix; ConfigError when that cannot be done."""
    try:
        figure.savefig(path, dpi=DPI)
        if path.suffix.lower() == ".png":
            with Image.open(path) as full:
                small = with_few_colours(full.convert("RGB"))
            small.save(path, optimize=True, dpi=(DPI, DPI))
    except (OSError, ValueError) as error:
        raise ConfigError(f"the picture cannot be written to {path} ({error}); choose another file, for "
                          "example episode.png") from error


def with_few_colours(picture: Image.Image) -> Image.Image:
    """The picture in 256 colours: camera noise in all its colours would be a file of four times the size.

    The most frequent colours, those of the drawing, stay as they are; the photographs share the others.
    """
    counted: list[Any] = sorted(picture.getcolors(picture.width * picture.height) or [], reverse=True)
    shared = picture.quantize(192, Image.Quantize.FASTOCTREE).getpalette() or []
    wanted: list[tuple[int, ...]] = [colour for _, colour in counted[:64]]
    wanted += [tuple(shared[i:i + 3]) for i in range(0, len(shared), 3)]
    # Pillow looks the nearest colour up coarsely: a near neighbour of white would tint the paper.
    chosen: list[tuple[int, ...]] = []
    for colour in wanted:
        if all(max(abs(a - b) for a, b in zip(colour, other, strict=True)) >= 8 for other in chosen):
            chosen.append(colour)
    palette = Image.new("P", (1, 1))
    palette.putpalette([value for colour in chosen for value in colour])
    return picture.quantize(palette=palette, dither=Image.Dither.NONE)
