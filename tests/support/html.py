"""A page of HTML, taken apart strictly: what a browser would repair is an error here."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = {"meta", "link", "input", "br", "img", "hr"}


@dataclass
class Element:
    """A tag with its attributes, what is in it, and its text."""

    tag: str
    attributes: dict[str, str]
    children: list["Element"] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    """Its own and those of all below it."""

    def __getitem__(self, name: str) -> str:
        return self.attributes[name]

    @property
    def text(self) -> str:
        """All text in it, with single blanks."""
        return " ".join("".join(self.texts).split())

    def all(self, *tags: str) -> list["Element"]:
        """Every element below it with one of these tags, in order; with all, if none is named."""
        elements = []
        for child in self.children:
            elements += [child] if not tags or child.tag in tags else []
            elements += child.all(*tags)
        return elements

    def one(self, tag: str) -> "Element":
        """Return the only element with a tag."""
        (element,) = self.all(tag)
        return element


class _Strict(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = Element("", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        assert len(attributes) == len(attrs), f"{tag}: an attribute twice"
        element = Element(tag, attributes)
        self.open[-1].children.append(element)
        if tag not in _VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().tag == tag, f"</{tag}> ends nothing"

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element.texts.append(data)


def parse(page: str) -> Element:
    """All of a page."""
    assert page.startswith("<!DOCTYPE html>\n")
    parser = _Strict()
    parser.feed(page)
    parser.close()
    assert parser.open == [parser.root], f"<{parser.open[-1].tag}> does not end"
    return parser.root
