"""What the pages of docs/ and the README say of the package is there; what can run runs elsewhere.

The README's blocks run in tests/test_readme.py. Those of docs/ may need servers and buckets: here
they are read.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.static import pages, reference
from tests.static.offenders import ROOT, read, refuse

pytestmark = pytest.mark.static


def test_every_name_that_a_page_uses_is_there() -> None:
    assert len(pages.pages()) > 100
    refuse((one for page in pages.pages() for one in pages.unknown_names(page)), "names exist")


def test_every_option_that_a_page_names_is_one() -> None:
    refuse((one for page in pages.pages() for one in pages.unknown_options(page)), "options exist")


def test_the_files_and_sections_that_a_page_points_to_are_there() -> None:
    refuse(
        (one for page in pages.pages() for one in pages.dead_links(page)), "links lead somewhere"
    )


def test_the_first_example_of_the_readme_has_eight_lines() -> None:
    first = pages.BLOCK.findall(read(ROOT / "README.md"))[0]
    assert sum(bool(line.strip()) for line in first.splitlines()) == 8


def test_the_readme_is_one_page() -> None:
    assert len(read(ROOT / "README.md").encode()) <= 10_000, "explain it in docs/ and link to it"


def test_the_changelog_of_a_version_is_one_page() -> None:
    versions = read(ROOT / "CHANGELOG.md").split("\n## ")[1:]
    assert versions
    for one in versions:
        assert len(one.encode()) <= 12_000, "say it in one line, and link to the page"


def test_no_name_is_documented_twice() -> None:
    names = reference.documented(reference.API)
    assert len(names) > 200
    refuse(reference.documented_twice(names), "a name is documented in one place")


def test_every_public_name_is_on_a_page_of_the_reference() -> None:
    names = reference.documented(reference.API)
    refuse(reference.undocumented(reference.PUBLIC, names), "public names are documented")


def test_what_a_page_imports_is_on_a_page_of_the_reference() -> None:
    names = reference.documented(reference.API)
    refuse(
        (
            one
            for page in pages.in_docs()
            for one in reference.imported_and_undocumented(page, names)
        ),
        "what a page imports is documented",
    )


def planted(folder: Path, text: str, name: str = "page.md") -> Path:
    page = folder / name
    page.write_text(f"# Page\n\n{text}\n", "utf-8")
    return page


@pytest.mark.parametrize(
    ("check", "text", "found"),
    [
        (
            pages.unknown_names,
            "```python\nnbp.watch\nnbp.wtach(model)\nrun.gone\n```",
            ["5: nbp.wtach does not exist", "6: run.gone does not exist"],
        ),
        (
            pages.unknown_options,
            "```python\nnbp.open_run(path, brunch=1)\n```",
            ["4: nbp.open_run(brunch=); allowed: "],
        ),
        (
            pages.dead_links,
            "[a](page.md#page) [b](#page) [c](https://x/y)\n[d](gone.md)\n[e](page.md#gone)",
            ["4: there is no file gone.md", "5: page.md#gone; sections: page"],
        ),
    ],
    ids=["name", "option", "link"],
)
def test_what_is_wrong_on_a_page_is_found(
    check: pages.Check, text: str, found: list[str], tmp_path: Path
) -> None:
    offenders = [one.partition("page.md:")[2] for one in check(planted(tmp_path, text))]
    assert len(offenders) == len(found)
    for offender, start in zip(offenders, found, strict=True):
        assert offender.startswith(start)


def test_a_block_that_is_no_python_is_found(tmp_path: Path) -> None:
    with pytest.raises(SyntaxError, match=r"page\.md, line 5"):
        pages.nodes(planted(tmp_path, "```python\na = 1\nb =\n```"))


def test_names_that_are_missing_from_the_reference_or_there_twice_are_found(tmp_path: Path) -> None:
    planted(tmp_path, "::: notebook_probe.watch\n::: notebook_probe.watch")
    names = reference.documented(tmp_path)
    [twice] = reference.documented_twice(names)
    assert twice.endswith("page.md:4: notebook_probe.watch is documented 2 times")
    missing = [*reference.undocumented(("notebook_probe",), names)]
    assert len(missing) > 20
    assert not any("notebook_probe.watch " in one for one in missing)
    code = "```python\nfrom notebook_probe import watch, open_run\n```"
    page = planted(tmp_path, code, "other.md")
    [found] = reference.imported_and_undocumented(page, names)
    assert found.endswith("other.md:4: notebook_probe.open_run is on no page of docs/reference/api")
