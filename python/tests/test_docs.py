"""The examples of docs/python.md."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest


def test_the_examples_are_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = Path(__file__).parents[2] / "docs" / "python.md"
    (tmp_path / "orders.csv").write_text(
        "city,status,price,qty\nBern,paid,1.50,2\nOslo,open,20,1\nBern,paid,2.25,4\nOslo,paid,,3\n"
    )
    monkeypatch.chdir(tmp_path)
    failed, tried = doctest.testfile(str(page), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert failed == 0
    assert tried > 10
