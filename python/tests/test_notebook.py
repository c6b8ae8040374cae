"""The notebook runs from its first cell to its last, and says what is stored in it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parent.parent / "examples" / "orders.ipynb"


def _said(notebook: Any) -> list[str]:
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    printed = [output.text for output in outputs if output.get("name") == "stdout"]
    # Of pandas and Polars each version shows tables in its own way.
    shown = [output.data["text/html"] for output in outputs if "ringfold" in output.get("data", {}).get("text/plain", "")]
    return printed + shown


@pytest.mark.filterwarnings("default")
def test_the_notebook_runs(tmp_path: Path) -> None:
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    for needed in ("ipykernel", "pandas", "polars"):
        pytest.importorskip(needed)
    stored = nbformat.read(NOTEBOOK, as_version=4)
    said = _said(stored)
    assert len(said) == 5
    os.environ.setdefault("JUPYTER_PLATFORM_DIRS", "1")
    run = nbclient.NotebookClient(stored, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert _said(run) == said
