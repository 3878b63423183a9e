"""The shipped files are found in a checkout and in a wheel."""

from __future__ import annotations

from pathlib import Path

import pytest

from core import resources
from core.errors import ConfigError
from core.prompting import schema_types

ROOT = Path(__file__).resolve().parents[2]


def test_in_a_checkout_they_stand_beside_core() -> None:
    if (ROOT / "core" / "_shipped").exists() or resources.CORE != ROOT / "core":
        pytest.skip("the installed wheel is tested, not the checkout")
    assert resources.site_types() == ROOT / "site_types.xml"
    assert resources.prompts_dir() == ROOT / "prompts"
    assert resources.static_dir() == ROOT / "static"


def test_in_a_wheel_they_stand_under_shipped_and_go_first(tmp_path: Path) -> None:
    core = tmp_path / "core"
    (core / "_shipped" / "prompts").mkdir(parents=True)
    (tmp_path / "prompts").mkdir()
    assert resources.find("prompts", core=core) == core / "_shipped" / "prompts"


def test_an_installation_without_them_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="lacks `static`"):
        resources.find("static", core=tmp_path / "core")


def test_the_class_tree_stands_in_the_package() -> None:
    assert schema_types.DATA.is_file()
    assert "CC BY-SA" in schema_types.DATA.read_text(encoding="utf-8")[:300]
