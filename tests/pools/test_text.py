from __future__ import annotations

import csv
import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pool_samples import put

from tailor.errors import InputError
from tailor.pools import Unreadable, open_pool
from tailor.pools.text import TextFile


def test_quoted_newlines_and_quotes(tmp_path):
    path = put(tmp_path / "t.csv", 'id,text\r\n1,"a\r\nb, ""c"""\r\n\r\n2,5" disk\r\n3,"x"\r\n')
    pool = TextFile(path, key="id")
    assert pool.ids == ["1", "2", "3"]
    assert pool.read([2, 0, 1]) == ["x", 'a\r\nb, "c"', '5" disk']


#: what a cell may hold to confuse a reader of lines
TRICKY = st.text('a"\n\r,|', max_size=8)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(st.text(st.characters(codec="utf-8"), max_size=8), TRICKY), min_size=1)
)
def test_reads_what_csv_reads(rows, tmp_path_factory):
    """Whatever csv can write and read back comes out the same, record by record."""
    out = io.StringIO(newline="")
    csv.writer(out).writerows([("text", "other"), *rows])
    written = out.getvalue().encode()
    expected = list(csv.reader(line.decode() for line in io.BytesIO(written)))[1:]
    pool = TextFile(put(tmp_path_factory.mktemp("t") / "t.csv", written), column="text")
    read = pool.read(range(len(pool)))
    assert read == [row[0] if row[0].strip() else Unreadable("empty") for row in expected if row]


def test_broken_lines_hurt_only_themselves(tmp_path):
    path = put(tmp_path / "t.csv", b'text,n\na,1\n"open,2\nb,3\n\xff\xfe,4\nc\n"x"y,5\nd,6\n')
    pool = TextFile(path)
    assert pool.ids == [str(i) for i in range(7)]
    read = pool.read(range(7))
    assert [r for r in read if isinstance(r, str)] == ["a", "b", "d"]
    assert [f"line {n}" in read[p].reason for p, n in ((1, 3), (3, 5), (4, 6), (5, 7))] == [
        True
    ] * 4
    assert "1 columns, the header has 2" in read[4].reason


def test_growth(tmp_path):
    path = put(tmp_path / "t.csv", "id,text\na,one\nb,two")
    pool = TextFile(path, key="id")
    assert pool.refresh() == 0
    put(path, 'id,text\na,one\nb,two and more\nc,"th')
    assert pool.refresh() == 0, "the last line is half written"
    assert pool.read([0, 1]) == ["one", "two and more"]
    put(path, 'id,text\na,one\nb,two and more\nc,"th\nree"\nd,four')
    assert pool.refresh() == 2
    assert pool.ids == ["a", "b", "c", "d"]
    assert pool.read([3, 2]) == ["four", "th\nree"]
    assert pool.ids == TextFile(path, key="id").ids
    put(path, path.read_bytes() + b"\na,again\n")
    with pytest.raises(
        InputError, match=r"id 'a' is there twice: line 2 of t.csv and line 7 of t.csv"
    ):
        pool.refresh()
    assert len(pool) == 4


def test_jsonl_growth_and_a_half_written_line(tmp_path):
    path = put(tmp_path / "t.jsonl", '{"text": "a"}\n')
    pool = TextFile(path)
    put(path, '{"text": "a"}\n{"text": "b"}\n{"te')
    assert pool.refresh() == 1
    put(path, '{"text": "a"}\n{"text": "b"}\n{"text": "c"}\n')
    assert pool.refresh() == 1
    assert pool.read([0, 1, 2]) == ["a", "b", "c"]
    path.unlink()
    assert pool.refresh() == 0
    assert pool.read([1]) == [Unreadable("missing")]


def test_a_file_written_anew_is_noticed(tmp_path):
    path = put(tmp_path / "t.csv", "text\nabc\ndef\n")
    pool = TextFile(path)
    put(path, "text\nabc\nxyz\n")
    assert pool.read([0]) == ["abc"]
    assert "line 3 has changed" in pool.read([1])[0].reason
    put(path, "text\n")
    assert all(isinstance(one, Unreadable) for one in pool.read([0, 1]))


def test_labels(tmp_path):
    rows = 'text,tags\na,x|y\nb,\nc,"[""z""]"\nd,[]\ne,x\n'
    path = put(tmp_path / "t.csv", rows)
    pool = TextFile(path, column="text", label="tags", label_separator="|")
    assert pool.labels() == {"0": ["x", "y"], "2": ["z"], "3": [], "4": ["x"]}
    assert open_pool(pool.describe()).labels() == pool.labels()
    path = put(
        tmp_path / "t.jsonl",
        "\n".join(json.dumps({"text": "t", "label": v}) for v in ("a", None, 3, True)),
    )
    assert TextFile(path).labels() == {"0": "a", "2": "3", "3": "true"}


def test_formats(tmp_path):
    assert TextFile(put(tmp_path / "t.tsv", "text\tn\na, b\t1\n")).read([0]) == ["a, b"]
    assert TextFile(put(tmp_path / "b.csv", b"\xef\xbb\xbftext;n\na,b;1\n"), delimiter=";").read(
        [0]
    ) == ["a,b"]
    assert TextFile(put(tmp_path / "l.csv", b"text\ncaf\xe9\n"), encoding="cp1252").read([0]) == [
        "café"
    ]
    pool = TextFile(put(tmp_path / "x.txt", '{"body": "a", "n": 3}'), format="jsonl")
    assert (pool.column, pool.read([0])) == ("body", ["a"])
    assert open_pool(pool.describe()).read([0]) == ["a"]


def test_what_it_refuses(tmp_path):
    path = put(tmp_path / "t.csv", "title,body,label\na,b,c\n")
    for options, message in [
        ({}, "may be in title, body"),
        ({"column": "bdy"}, "did you mean 'body'"),
        ({"delimiter": ",,"}, "one character"),
        ({"encoding": "utf-16"}, "save the file as UTF-8"),
        ({"encoding": "utf9"}, "unknown encoding"),
        ({"label_separator": ""}, "label_separator is empty"),
        ({"format": "xml"}, "name its format"),
    ]:
        with pytest.raises(InputError, match=message):
            TextFile(path, **options)
    for content, message in [
        ("", "no header"),
        ("text\n", "no record"),
        ("a,a\n1,2\n", "there twice"),
    ]:
        with pytest.raises(InputError, match=message):
            TextFile(put(path, content))
    with pytest.raises(InputError, match="no JSON object"):
        TextFile(put(tmp_path / "t.jsonl", "no json\n"))
