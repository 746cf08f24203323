"""Write requirements/lock/pyX.Y.txt for the Python that runs this: every distribution, its version and hash.

Run it (`make lock`) after a change to requirements/*.txt, once for each Python version, in a virtual
environment that has what requirements/build.txt names. pip resolves; nothing is installed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILES = ("build", "ros", "core", "sim", "train", "dev")


def resolve() -> list[tuple[str, str, str]]:
    """Name, version and sha256 of all that the requirement files need, as pip would install it here."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed",
                   "--no-build-isolation", "--report", str(report)]
        for name in FILES:
            command += ["-r", str(ROOT / "requirements" / f"{name}.txt")]
        subprocess.run(command, check=True)
        entries = json.loads(report.read_text())["install"]
    locked = []
    for entry in entries:
        name = entry["metadata"]["name"].lower().replace("_", "-")
        sha256 = entry["download_info"]["archive_info"]["hashes"]["sha256"]
        locked.append((name, entry["metadata"]["version"], sha256))
    return sorted(locked)


def main() -> None:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    target = ROOT / "requirements" / "lock" / f"py{version}.txt"
    lines = [f"# Python {version}, x86-64 Linux. Written by `make lock`; edit requirements/*.txt instead."]
    for name, number, sha256 in resolve():
        lines += [f"{name}=={number} \\", f"    --hash=sha256:{sha256}"]
    target.write_text("\n".join(lines) + "\n")
    print(f"{target.relative_to(ROOT)}: {(len(lines) - 1) // 2} distributions")


if __name__ == "__main__":
    main()
