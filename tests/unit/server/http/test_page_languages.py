"""The words of the pages: each sentence has its translation, and each reader the right language."""

import re
from pathlib import Path

import pytest

from huai_program.words import LANGUAGES, load_words
from huai_server.http.pages.charts import PERIODS
from huai_server.http.pages.reading import KINDS
from huai_server.http.pages.rendering import preferred_language
from huai_server.http.pages.state import WORDS

PAGES = Path(__file__).parents[4] / "server" / "huai_server" / "http" / "pages"
SAID = re.compile(r"""\b_\(\s*(?:"([^"]+)"|'([^']+)')""")
PACKAGE = "huai_server.http.pages"
OTHERS = [tag for tag in LANGUAGES if tag != "en"]


def sentences() -> set[str]:
    """Return every sentence of a template or a page."""
    texts = [each.read_text(encoding="utf-8") for each in PAGES.glob("templates/*.html")]
    needed = {one or other for text in texts for one, other in SAID.findall(text)}
    modules = [*PAGES.glob("*.py"), PAGES.parent / "any_path.py", PAGES.parent / "access.py"]
    source = "".join(each.read_text(encoding="utf-8") for each in modules)
    needed |= set(re.findall(r'hint(?:=| = )"([^"]+)"', source))
    needed |= set(re.findall(r'(?:translate\(|86400, |3600, |60, )"([^"]+)"', source))
    needed |= {*WORDS.values(), *PERIODS, *KINDS}
    needed |= set(re.findall(r'HttpError\(\s*\d+,\s*"([^"]+)"', source))
    return needed


@pytest.mark.parametrize("tag", OTHERS)
def test_each_sentence_has_its_translation_and_no_other_has(tag: str) -> None:
    catalogue = load_words(PACKAGE, tag).catalogue
    needed = sentences()
    assert len(needed) > 20
    # Sentences from outside the pages: the limits of the server, unknown addresses, damage.
    elsewhere = {"the server is busy", "try again later", "not found", "see /openapi.json"}
    elsewhere |= {"the module's metadata cannot be read", "see the server's log", "internal error"}
    assert catalogue.keys() - needed <= elsewhere
    assert needed - catalogue.keys() == set()


def test_one_of_a_thing_is_no_plural() -> None:
    english, chinese = (load_words(PACKAGE, tag) for tag in LANGUAGES)
    assert english.catalogue.keys() <= sentences()
    texts = [english.translate("{n} files", n=number) for number in ("0", "1", "11")]
    assert texts == ["0 files", "1 file", "11 files"]
    assert chinese.translate("{n} files", n="1") == "1 个文件"


@pytest.mark.parametrize("tag", LANGUAGES)
def test_a_translation_has_the_places_of_its_sentence(tag: str) -> None:
    for english, other in load_words(PACKAGE, tag).catalogue.items():
        assert sorted(re.findall(r"{\w+}", english)) == sorted(re.findall(r"{\w+}", other))


def test_the_language_that_a_browser_wants_most(subtests: pytest.Subtests) -> None:
    for header, tag in [
        (None, "en"),
        ("", "en"),
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        ("en-GB, zh;q=0.9", "en"),
        ("de, fr;q=0.9", "en"),
        ("de, zh;q=0.1", "zh"),
        ("zh;q=0, en;q=0.1", "en"),
        ("ZH-hant", "zh"),
        ("zh;q=x", "en"),
        ("zh;q=nan", "en"),
        (";;;,,=", "en"),
        ("zh" * 10_000, "en"),
    ]:
        with subtests.test(header=header, tag=tag):
            assert preferred_language(header) == tag
