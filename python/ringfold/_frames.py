"""Answers for people and for other libraries."""

from __future__ import annotations

import html
from typing import Any

from . import _ringfold

_ROWS = 20
"""Rows that a table has."""


def table(answer: _ringfold.Answer) -> str:
    """The first rows as a table."""
    text = answer.head(_ROWS, "table").rstrip("\n")
    rows = len(answer)
    return text if rows <= _ROWS else f"{text}\n… {rows:,} rows, of which these are the first {_ROWS}"


def page(answer: _ringfold.Answer) -> str:
    """The same for a notebook."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in answer.columns)
    body = ""
    for row in answer.rows(first=_ROWS):
        cells = ("" if cell is None else html.escape(str(cell)) for cell in row)
        body += "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
    rows = len(answer)
    more = "" if rows <= _ROWS else f"<p>{rows:,} rows, of which these are the first {_ROWS}</p>"
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def to_pandas(answer: _ringfold.Answer, exact: bool) -> Any:
    """A DataFrame of pandas, by way of pyarrow if it is installed."""
    import pandas

    try:
        import pyarrow
    except ImportError:
        columns = list(zip(*answer.rows(exact=exact))) or [()] * len(answer.columns)
        return pandas.DataFrame(dict(zip(answer.columns, map(list, columns))))
    return pyarrow.table(answer if exact else answer.doubles()).to_pandas()


def to_polars(answer: _ringfold.Answer, exact: bool) -> Any:
    """A DataFrame of Polars."""
    import polars

    return polars.DataFrame(answer if exact else answer.doubles())
