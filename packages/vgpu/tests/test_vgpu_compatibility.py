"""The generated tables of docs/results.md: every test file has its row, and only the script has written them."""

from pathlib import Path

import compatibility
import pytest

RESULTS = """<testsuites><testsuite>
<properties><property name="torch" value="2.13.0"/></properties>
<testcase classname="tests.test_vgpu_devices" name="test_a"/>
<testcase classname="tests.test_vgpu_devices.TestB" name="test_b[1]"><skipped type="pytest.skip"/></testcase>
<testcase classname="tests.test_vgpu_errors" name="test_c"><failure>why</failure></testcase>
<testcase classname="" name="tests.test_vgpu_lazy"><error>it could not be imported</error></testcase>
<testcase classname="tests.other_boxes" name="test_d"/>
</testsuite></testsuites>"""
EMPTY = "before\n" + "".join("".join(compatibility._marks(table)) for table in ("tests", "tables")) + "after\n"


def test_the_tables_were_written_by_the_script():
    text = compatibility.DOCUMENT.read_text(encoding="utf-8")
    for table in (compatibility.TESTS, compatibility.TABLES):
        columns = compatibility.read_written(text, table)
        assert columns and compatibility.write(text, table, columns) == text, f"write {table} with compatibility.py"


def test_what_the_tables_say_is_enough():
    text = compatibility.DOCUMENT.read_text(encoding="utf-8")
    assert "failed" not in compatibility._between(text, compatibility.TESTS)
    for version, column in compatibility.read_written(text, compatibility.TABLES).items():
        for row, cell in column.items():
            agree, all_of_them = map(int, cell.split(" of "))
            assert agree >= 0.99 * all_of_them, f"torch {version}, {row}: {cell}"


def test_results_become_a_column_beside_the_others(tmp_path: Path):
    document, results = tmp_path / "table.md", tmp_path / "results.xml"
    document.write_text(EMPTY)
    results.write_text(RESULTS)
    for given in (str(results), f"2.9.1+cpu={results}"):
        compatibility.main([given, "--document", str(document)])
    column = {"`devices`": "1, 1 skipped", "`errors`": "0, **1 failed**", "`lazy`": "0, **1 failed**"}
    text = document.read_text()
    assert compatibility.read_written(text, "tests") == {"2.9.1+cpu": column, "2.13.0": column}
    assert "| `devices` | 1, 1 skipped | 1, 1 skipped |\n" in text and text.endswith("after\n")
    assert "| **all** | 1, 1 skipped, **2 failed** |" in text


def test_what_the_oracle_prints_becomes_a_column(tmp_path: Path):
    document, printed = tmp_path / "table.md", tmp_path / "oracle.txt"
    document.write_text(EMPTY)
    printed.write_text("torch 2.13.0\ntorch 2.13.0, float32: 9 of 10 operators agree\n")
    compatibility.main([str(printed), "--document", str(document)])
    printed.write_text("torch 2.13.0, one tensor on cuda:0: 3 of 4 agree\n")
    compatibility.main([str(printed), "--document", str(document)])
    found = compatibility.read_written(document.read_text(), "tables")["2.13.0"]
    names = compatibility.SCRIPTS
    assert found == {names["float32"]: "9 of 10", names["one tensor on cuda:0"]: "3 of 4"}


def test_results_that_name_no_torch_are_refused(tmp_path: Path):
    document, results = tmp_path / "table.md", tmp_path / "results.xml"
    document.write_text(EMPTY)
    results.write_text(RESULTS.replace('name="torch"', 'name="other"'))
    with pytest.raises(SystemExit):
        compatibility.main([str(results), "--document", str(document)])
    assert document.read_text() == EMPTY
