import pytest
from golden_files import compare_golden


def test_a_golden_file_that_differs_is_named_with_its_line_and_the_flag(monkeypatch, tmp_path):
    monkeypatch.setattr("golden_files.ROOT", tmp_path)
    path = tmp_path / "report.txt"
    compare_golden(path, "first\nsecond", update=True)
    compare_golden(path, "first\nsecond", update=False)
    with pytest.raises(pytest.fail.Exception) as failure:
        compare_golden(path, "first\n2nd", update=False)
    lines = str(failure.value).splitlines()
    assert lines[0] == "golden file report.txt, line 2 differs"
    assert lines[1:3] == ["  golden: 'second'", "  actual: '2nd'"]
    assert "--update-golden" in lines[3]
    with pytest.raises(pytest.fail.Exception, match=r"line 2 differs\n.*\n  actual: \(no such"):
        compare_golden(path, "first", update=False)
    with pytest.raises(AssertionError, match=r"report\.md does not exist; .*--update-golden"):
        compare_golden(path.with_suffix(".md"), "first", update=False)
