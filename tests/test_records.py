r"""Records of users: any of the encodings JSON knows, lines that end at `\n`, nothing guessed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench_lib.texts import records

CODECS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32")
NO_BREAKS = "\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e\u3000"


def entries(folder: Path, data: bytes) -> list[records.Entry]:
    path = folder / "a.jsonl"
    path.write_bytes(data)
    return records.entries(path)


words = st.text(st.characters(codec="utf-8") | st.sampled_from(NO_BREAKS + "\ufeff"), max_size=20)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(words, min_size=1, max_size=4),
    st.sampled_from(CODECS),
    st.sampled_from(["\n", "\r\n"]),
)
def test_every_text_comes_back_in_every_encoding(
    tmp_path: Path, said: list[str], codec: str, end: str
) -> None:
    lines = [json.dumps({"q": text}, ensure_ascii=False) for text in said]
    found = entries(tmp_path, (end.join(lines) + end).encode(codec))
    assert [entry.value for entry in found] == [{"q": text} for text in said]
    assert [entry.where for entry in found] == [f"line {n}" for n in range(1, len(said) + 1)]
    path = tmp_path / "a.json"
    path.write_bytes(json.dumps(said, ensure_ascii=False, indent=1).encode(codec))
    assert records.value(path) == said


@pytest.mark.parametrize("mark", NO_BREAKS)
def test_only_newlines_end_a_line(tmp_path: Path, mark: str) -> None:
    # JSON forbids control characters inside its texts, but between its parts they are no line end.
    said = mark if mark >= "\x7f" else json.dumps(mark)[1:-1]
    line = f'{{"q": "a{said}b"}}'
    found = entries(tmp_path, f"{line}\n{line}\n".encode())
    assert [entry.value for entry in found] == [{"q": f"a{mark}b"}] * 2


def test_joined_files_keep_their_first_records(tmp_path: Path) -> None:
    one = '{"id": "a"}\r\n'.encode("utf-8-sig")
    assert [e.value for e in entries(tmp_path, one + b" \t\r\n" + one)] == [{"id": "a"}] * 2


def test_a_list_is_read_as_its_items(tmp_path: Path) -> None:
    text = '\n [\n{"id": 1},\n{"id": NaN}, {"id": 3}\n]\n'
    found = entries(tmp_path, text.encode("utf-16"))
    assert [(e.where, e.value) for e in found if not e.fault] == [
        ("item 1", {"id": 1}),
        ("item 3", {"id": 3}),
    ]


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ('{"q": "钥匙在哪里"}'.encode("gbk"), "column 9, which is not UTF-8; save the file as"),
        (b"{'q': 1}", "is not JSON"),
        (b'{"q": 1,}', "is not JSON"),
        (b'{"q": 1},', "is not JSON"),
        (b'{"q": 1, "q": 2}', "gives 'q' twice"),
        (b'{"a": [{"q": 1, "q": 2}]}', "gives 'q' twice"),
        (b'{"q": NaN}', "holds NaN, which is no number"),
        (b'{"q": [-Infinity]}', "holds -Infinity"),
        (b'{"q": 1e999}', "holds 1e999"),
        (b'{"q": ' + b"9" * 400 + b"}", "holds 99999"),
        (b'{"q": "\\ud83d"}', "lone surrogate"),
        (b'{"\\ud83d": 1}', "lone surrogate"),
        (b"[" * 100_000, "is nested too deeply"),
        (b'{"q": ' * 100_000, "is nested too deeply"),
        (b"\0\0\0\0", "is not JSON"),
        (b'{"q": "half a recor', "is not JSON"),
    ],
)
def test_what_cannot_be_read_is_named_and_the_rest_is_read(
    tmp_path: Path, bad: bytes, said: str
) -> None:
    before, *_, after = found = entries(tmp_path, b'{"id": 1}\n' + bad + b'\n{"id": 2}\n')
    assert (before.value, after.value) == ({"id": 1}, {"id": 2})
    fault = found[1]
    assert fault.where == "line 2"
    assert said in fault.fault
    assert fault.value is None
    path = tmp_path / "a.json"
    path.write_bytes(bad)
    with pytest.raises(records.Unreadable):
        records.value(path)


def test_a_character_cut_in_half_costs_its_line(tmp_path: Path) -> None:
    data = '{"id": 1}\n{"id": "é"}'.encode("utf-16")[:-5]
    first, second = entries(tmp_path, data)
    assert first.value == {"id": 1}
    assert "not UTF-16" in second.fault


def test_a_fault_of_a_whole_file_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    for data, line in (
        (b'{\n"a": 1,\n"b": \xc4\n}', "line 3 has the byte 0xC4"),
        (b"{\n\n'", "line 3 is not JSON"),
    ):
        path.write_bytes(data)
        with pytest.raises(records.Unreadable, match=line):
            records.value(path)


def test_what_is_no_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(records.Unreadable, match="cannot be read"):
        records.entries(tmp_path)
    with pytest.raises(records.Unreadable, match="cannot be read"):
        records.text(tmp_path / "none")


def test_a_fault_inside_a_record_names_its_field(tmp_path: Path) -> None:
    data = b'{"a": {"b": [1, NaN]}}\n{"a": {"b": 1, "b": 2}}\n{"a": "\\udc00"}\nNaN\n'
    assert [e.field for e in entries(tmp_path, data)] == ["a.b[1]", "a", "a", "JSON"]
