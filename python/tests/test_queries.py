"""Queries are values, and have a field for every flag."""

from __future__ import annotations

import ast
import dataclasses
import pickle
from pathlib import Path

import pytest

import ringfold
from ringfold import Query, _query, _ringfold

# Flags of `aggregate` that no field of a query is for, and why.
LEFT_OUT = {
    "no-header": "header=False",
    "exact": "hidden in the program, too: answers are exact anyway",
    "explain": "Query.explain",
    "format": "Answer.text, Answer.write",
    "output": "Answer.write",
    "progress": "an argument of aggregate",
    "stats": "Answer.stats and Answer.counts are always there",
    "next": "each query is a call",
    "queries": "each query is a call",
    "range": "an argument of Query.partial",
    "begin": "an argument of Query.partial",
    "save-partial": "Query.partial",
    "continue": "Query.partial and merge",
    "report-too": "Partial.result",
    "help-io": "ringfold aggregate --help-io",
}


def test_every_flag_has_a_field() -> None:
    flags = {name for name, _ in _ringfold.flags("aggregate")}
    fields = [field.name for field in dataclasses.fields(Query)]
    of_fields = {_query._FLAGS.get(name, name).replace("_", "-") for name in fields}
    assert of_fields - flags == set(), "fields without a flag"
    assert flags - of_fields - LEFT_OUT.keys() == {"help"} & flags, "flags without a field"
    assert LEFT_OUT.keys() - flags - {"help"} == set(), "there are no such flags"
    assert LEFT_OUT.keys() & of_fields == set()


def test_fields_take_values_as_flags_do() -> None:
    is_valued = dict(_ringfold.flags("aggregate"))
    for field in dataclasses.fields(Query):
        flag = _query._FLAGS.get(field.name, field.name).replace("_", "-")
        kind = str(field.type)
        is_optional = flag in ("sqpoll", "async")
        is_switch = kind.startswith("bool") and not is_optional
        assert is_valued[flag] != is_switch, field.name


def test_both_lists_of_fields_are_the_same() -> None:
    stub = ast.parse(Path(_query.__file__).with_name("_fields.pyi").read_text())
    named = next(node for node in stub.body if isinstance(node, ast.ClassDef))
    of_stub = {
        node.target.id: ast.unparse(node.annotation)
        for node in named.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    fields = {field.name: ast.unparse(ast.parse(str(field.type))) for field in dataclasses.fields(Query)}
    assert {**of_stub, "by": "Columns", "agg": "Aggregates"} == fields


def test_queries_are_values() -> None:
    one = Query(by="city", agg=["count"], where=("a", "b"), top=3, memory="1G", header=False, io_timeout=1.5, sqpoll=3)
    other = Query(by=["city"], agg="count", where=["a", "b"], top=3, memory="1G", header=False, io_timeout=1.5, sqpoll=3)
    assert one == other
    assert hash(one) == hash(other)
    assert one != one.replace(top=4)
    assert pickle.loads(pickle.dumps(one)) == one
    assert one.flags() == [
        "--key=city",
        "--aggregate=count",
        "--where=a",
        "--where=b",
        "--top=3",
        "--no-header",
        "--memory=1G",
        "--io-timeout=1500ms",
        "--sqpoll=3",
    ]
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.top = 4  # type: ignore[misc]


def test_one_query_of_several_files(files: Path) -> None:
    query = Query(by="city", agg={"n": "count", "the sum": "sum(price)"})
    answer = pickle.loads(pickle.dumps(query)).aggregate("orders.csv")
    assert answer.columns == ["city", "n", "the sum"]
    assert [row[1] for row in answer] == [2, 2, 1]
    assert list(ringfold.aggregate("orders.csv", header=True)) == [(5,)]
