"""Answers are those of the command line, byte for byte, and the same in every form."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import ringfold

Program = Callable[..., bytes]

QUESTIONS: list[tuple[dict[str, Any], list[str]]] = [
    ({"by": "key"}, ["-k", "key"]),
    (
        {"by": ["key", "kind"], "agg": ["count", "sum:price", "mean:price"], "threads": 1},
        ["-k", "key", "-k", "kind", "-a", "count,sum:price,mean:price", "-j1"],
    ),
    (
        {"by": "kind", "agg": {"n": "count", "total": "sum(price * qty)"}, "where": "qty > 3"},
        ["-k", "kind", "-a", "count as n,sum(price * qty) as total", "--where", "qty > 3"],
    ),
    (
        {"by": "key", "agg": "sum:price,p99:qty", "sort": "sum_price:desc", "top": 10, "total": True},
        ["-k", "key", "-a", "sum:price,p99:qty", "--sort", "-sum_price", "--top", "10", "--total"],
    ),
    (
        {"by": ["kind", "qty"], "agg": "stddev:price", "pivot": "qty", "precision": 3},
        ["-k", "kind,qty", "-a", "stddev:price", "--pivot", "qty", "--precision", "3"],
    ),
    ({"by": 1, "agg": "count", "header": False, "having": ["count > 5"]}, ["-k1", "--no-header", "--having", "count > 5"]),
    (
        {"by": "key", "agg": "distinct:kind,sum:price", "memory": "1M", "block_size": "64K", "engine": "pread"},
        ["-k", "key", "-a", "distinct:kind,sum:price", "--memory", "1M", "--block-size", "64K", "--engine", "pread"],
    ),
]


@pytest.mark.parametrize(("fields", "flags"), QUESTIONS)
@pytest.mark.filterwarnings("ignore::ringfold.Notice")
def test_answers_are_the_programs(large: Path, program: Program, fields: dict[str, Any], flags: list[str]) -> None:
    answer = ringfold.aggregate(large, **fields)
    for format in ("csv", "ndjson", "table", "arrow"):
        assert answer.text(format) == program("aggregate", "-q", "-f", format, *flags, large), format
    assert answer.counts["rows"] + answer.counts["filtered"] in (30_000, 30_001)


def test_rows_are_the_json(large: Path) -> None:
    answer = ringfold.aggregate(large, by=["key", "kind"], agg=["count", "sum:price", "mean:qty"])
    lines = answer.text("ndjson").decode("utf-8", "surrogateescape").splitlines()
    assert len(answer) == len(lines) > 10_000
    for row, line in zip(answer.rows(), lines):
        of_json = json.loads(line, parse_float=Decimal)
        texts = [cell.decode("utf-8", "surrogateescape") if isinstance(cell, bytes) else cell for cell in row]
        want = list(of_json.values())
        assert texts == want
    exact = list(answer.rows(first=500))
    near = list(answer.rows(exact=False, first=500))
    for one, other in zip(exact, near):
        assert [float(cell) if isinstance(cell, Decimal) else cell for cell in one] == list(other)
    assert any(isinstance(cell, Decimal) for row in exact for cell in row)


def test_nulls_and_large_numbers(files: Path) -> None:
    Path("n.csv").write_text("k,v\na,99999999999999999999999\na,1\nb,\nc,0.5\n")
    rows = list(ringfold.aggregate("n.csv", by="k", agg="sum:v"))
    assert rows == [("a", Decimal("100000000000000000000000.0")), ("b", None), ("c", Decimal("0.5"))]
    assert [type(cell) for cell in rows[2]] == [str, Decimal]
    Path("i.csv").write_text("k,v\na,99999999999999999999999\na,1\n")
    assert list(ringfold.aggregate("i.csv", by="k", agg="sum:v")) == [("a", 10**23)]


def test_infinities(tmp_path: Path) -> None:
    file = tmp_path / "f.csv"
    file.write_text("k,x\ninf,1.5\nb,-inf\nnan,nan\n")
    answer = ringfold.aggregate(file, by="k", agg="sum:x", float=True)
    assert [(key, str(number)) for key, number in answer] == [("b", "-Infinity"), ("inf", "1.5"), ("nan", "NaN")]
    assert [(key, repr(number)) for key, number in answer.rows(exact=False)] == [("b", "-inf"), ("inf", "1.5"), ("nan", "nan")]


def test_many_files_are_one_input(files: Path) -> None:
    one = ringfold.aggregate("orders.csv", by="city")
    two = ringfold.aggregate(["orders.csv", Path("orders.csv")], by="city")
    assert [(city, 2 * count) for city, count in one.rows()] == list(two.rows())


def test_logs_and_json_lines(files: Path) -> None:
    log = ringfold.aggregate("access.log", by=["status", "time@hour"], agg="sum:bytes", log="common")
    assert list(log) == [("200", "2026-11-25T13", 512), ("200", "2026-11-25T14", None), ("404", "2026-11-25T13", 12)]
    events = ringfold.aggregate("events.jsonl", by="user.country", agg="max:ms")
    assert list(events) == [("CH", Decimal("2.0")), ("NO", Decimal("20.0"))]


def test_written_files(files: Path) -> None:
    answer = ringfold.aggregate("orders.csv", by="city", agg="sum:price")
    answer.write("a.csv")
    answer.write(files / "a.json")
    answer.write("a.any", "tsv")
    assert Path("a.csv").read_bytes() == answer.text()
    assert json.loads(Path("a.json").read_text())[0] == {"city": "Bern", "sum_price": 3.75}
    assert Path("a.any").read_bytes() == answer.text("tsv")
    with pytest.raises(ringfold.UsageError, match="xlsx"):
        answer.write("a.xlsx")
    with pytest.raises(ringfold.UsageError, match="there is no format `excel`"):
        answer.text("excel")
    with pytest.raises(ringfold.FileError):
        answer.write("no/such/directory.csv")


def test_shown(files: Path) -> None:
    answer = ringfold.aggregate("orders.csv", by="city", agg="sum:price")
    assert str(answer) == answer.text("table").decode().rstrip("\n")
    assert repr(answer) == "<ringfold.Answer of 3 rows: city, sum_price>"
    assert "<td>Rio, RJ</td><td>0.10</td>" in answer._repr_html_()
    Path("many.csv").write_text("k\n" + "".join(f"<{number}>\n" for number in range(1234)))
    many = ringfold.aggregate("many.csv", by="k")
    assert str(many).endswith("… 1,234 rows, of which these are the first 20")
    assert "<td>&lt;0&gt;</td>" in many._repr_html_()


def test_arrow(large: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    answer = ringfold.aggregate(large, by=["key", "kind"], agg=["count", "sum:price", "mean:qty"])
    table = pyarrow.table(answer)
    assert table.column_names == answer.columns
    assert pyarrow.schema(answer) == table.schema
    assert table.num_rows == len(answer)
    columns = list(zip(*answer.rows()))
    assert table["count"].to_pylist() == list(columns[2])
    assert table["sum_price"].to_pylist() == list(columns[3])
    near = pyarrow.table(answer.doubles())
    assert near["sum_price"].to_pylist() == [None if cell is None else float(cell) for cell in columns[3]]
    # A consumer may stop at any batch.
    reader = pyarrow.RecordBatchReader.from_stream(answer)
    assert reader.read_next_batch().num_rows == len(answer)
    del reader


def test_polars_and_pandas(large: Path) -> None:
    polars, pandas = pytest.importorskip("polars"), pytest.importorskip("pandas")
    answer = ringfold.aggregate(large, by="key", agg=["count", "sum:price"], where="kind != ''")
    rows = list(answer.rows())
    assert polars.DataFrame(answer).rows() == rows
    near = [row[2] if row[2] is None else float(row[2]) for row in rows]
    assert answer.to_polars()["sum_price"].to_list() == near
    frame = answer.to_pandas()
    assert list(frame["key"]) == [row[0] for row in rows]
    assert frame["sum_price"].dtype == float
    assert [None if pandas.isna(cell) else cell for cell in frame["sum_price"]] == near
    exact = answer.to_pandas(exact=True)
    assert [None if pandas.isna(cell) else cell for cell in exact["sum_price"]] == [row[2] for row in rows]


def test_as_duckdb_has_it(large: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    text = large.read_bytes().replace(b"\xff\xfe", b"ff")
    path = large.with_name("utf8.csv")
    path.write_bytes(text)
    answer = ringfold.aggregate(path, by="key", agg={"n": "count", "total": "sum:price"})
    assert answer.columns == ["key", "n", "total"]
    read = f"read_csv('{path}', types={{'key': 'VARCHAR', 'kind': 'VARCHAR', 'price': 'DECIMAL(18, 2)', 'qty': 'INT'}})"
    want = duckdb.sql(f"select key, count(*), sum(price) from {read} group by 1 order by 1").fetchall()
    assert sorted(answer.rows()) == [row if row[2] is not None else (*row[:2], None) for row in want]
    total = duckdb.sql("select sum(n), sum(total) from answer").fetchall()[0]
    assert total == (30_000, sum(row[2] for row in want if row[2] is not None))


def test_count_describe_probe_explain(files: Path, program: Program) -> None:
    assert ringfold.count("orders.csv") == (6, len(Path("orders.csv").read_bytes()))
    assert ringfold.count(["orders.csv", "orders.csv"]).lines == 12
    assert ringfold.count("orders.csv", null=True).lines == 0
    described = ringfold.describe("orders.csv")
    assert described.text() == program("describe", "-q", "orders.csv")
    found = ringfold.probe("orders.csv")
    assert {section["name"] for section in found["sections"]} >= {"device"}
    explained = ringfold.Query(by="city").explain("orders.csv")
    assert explained.encode() == program("aggregate", "-q", "-k", "city", "--explain", "orders.csv")
