"""The wheel has everything that a server needs: built, unpacked, and started without the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

from tests.conftest import ROOT


def test_wheel_alone_serves_what_the_checkout_does(tmp_path: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = tmp_path.glob("askable-*.whl")
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    for shipped in (
        "site_types.xml",
        "prompts/trattoria.xml",
        "prompts/liguria.xml",
        "static/index.html",
        "samples/judged.jsonl",
    ):
        assert (site / "core" / "_shipped" / shipped).is_file()
    assert not (site / "tests").exists()
    # The folder of the wheel goes before the checkout, which is not on the path at all.
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("ASKABLE_", "OPENAI_", "PYTHON"))}
    script = (
        "import core, sys; assert core.__file__.startswith(sys.argv[1]);"
        "from server.cli import cli; cli(sys.argv[2:])"
    )
    asked = subprocess.run(
        [
            sys.executable,
            "-c",
            script,
            str(site),
            "load",
            str(site / "core/_shipped/samples/liguria"),
            "--site",
            "l",
        ],
        cwd=tmp_path,
        env={**environ, "PYTHONPATH": str(site), "ASKABLE_RETRIEVAL__LEGS": '["bm25"]'},
        capture_output=True,
        text=True,
        check=False,
    )
    assert asked.returncode == 0, asked.stderr
    assert "l: 16 added" in asked.stdout
