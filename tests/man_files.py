"""Man pages of section 5 from the pages that describe the configuration files.

`python -m tests.man_files FOLDER` writes one page for each file.  Only what those pages use of
Markdown is known: headings, paragraphs, lists, tables, code.  Rule to keep: no sentence about a
key stands here; it belongs into the page.
"""

import re
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from tests.man_pages import escape

_TOP = Path(__file__).parent.parent
FILES = {
    "huai-client.toml": ("client/CONFIGURATION.md", "what huai-client mirrors, and how"),
    "huai-server.toml": ("server/CONFIGURATION.md", "what huai-server commits and serves"),
}
"""Each page with its source and its summary."""
_SEE_ALSO = {"huai-client.toml": "huai-client", "huai-server.toml": "huai-server"}


def file_page(name: str, release: str) -> str:
    """The whole page of one configuration file."""
    source, summary = FILES[name]
    root = SyntaxTreeNode(_parser().parse((_TOP / source).read_text(encoding="utf-8")))
    lines = [
        f'.TH {escape(name).upper()} 5 "" "huai {release}" "huai"',
        f".SH NAME\n{escape(name)} \\- {escape(summary)}",
        *(line for node in root.children for line in _block(node)),
        f".SH SEE ALSO\n.BR {escape(_SEE_ALSO[name])} (1)",
    ]
    return "\n".join(lines) + "\n"


def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("table")


def _block(node: SyntaxTreeNode) -> Iterator[str]:
    if node.type == "heading":
        if node.tag != "h1":  # the name of the page, which stands in its head
            yield f".SH {_inline(node).upper()}"
    elif node.type == "paragraph":
        yield f".PP\n{_inline(node)}"
    elif node.type == "table":
        yield from _table(node)
    elif node.type == "bullet_list":
        for item in node.children:
            yield ".IP \\(bu 2\n" + "\n.br\n".join(map(_inline, item.children))
    elif node.type in {"fence", "code_block"}:
        yield f".PP\n.nf\n{escape(node.content.rstrip())}\n.fi"
    else:
        raise ValueError(f"a man page cannot show {node.type}")


def _table(table: SyntaxTreeNode) -> Iterator[str]:
    """A row a paragraph: its first cell (and its second, of tables of keys) is the tag."""
    body = [row for part in table.children if part.type == "tbody" for row in part.children]
    for row in body:
        first, *rest = (_inline(cell) for cell in row.children)
        if len(rest) == 3:
            if first:
                yield f".SS {first}"
            keys, default, meaning = rest
            yield f".TP\n{keys}\n{meaning}" + (f" (default: {default})" if default else "")
        else:
            yield f".TP\n{first}\n" + "\n.br\n".join(rest)


def _inline(node: SyntaxTreeNode) -> str:
    """The text of a block: code in bold, links without their address."""
    if node.type == "text":
        return escape(node.content)
    if node.type == "code_inline":
        return f"\\fB{escape(node.content)}\\fP"
    if node.type == "softbreak":
        return " "
    return re.sub(r"^([.'])", r"\\&\1", "".join(map(_inline, node.children)))


def main(folder: Path) -> None:
    """Write every page."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        path = folder / f"{name}.5"
        path.write_text(file_page(name, version("huai")), encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
