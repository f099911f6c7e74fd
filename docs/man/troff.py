"""Converts plain text and Markdown to troff, as far as the pages of this project need it.

Headings, paragraphs, lists, tables and code are supported; anything else is an error.
"""

import re
from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

_KEYS = ["table", "key", "default", "meaning"]
"""The head of a table of configuration keys."""


def escape(text: str) -> str:
    """Escape `text` for troff: backslashes, dashes, and lines that would be requests."""
    safe = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join("\\&" + x if x.startswith((".", "'")) else x for x in safe.split("\n"))


def markdown(text: str) -> Iterator[str]:
    """Yield the blocks of a page, without its title, which the head of a man page has."""
    parser = MarkdownIt("commonmark").enable("table")
    for node in SyntaxTreeNode(parser.parse(text)).children:
        yield from _block(node)


def _block(node: SyntaxTreeNode) -> Iterator[str]:
    if node.type == "heading":
        if node.tag != "h1":
            yield f".SH {_inline(node).upper()}"
    elif node.type == "paragraph":
        yield f".PP\n{_inline(node)}"
    elif node.type == "table":
        yield from _table(node)
    elif node.type == "bullet_list":
        for item in node.children:
            yield ".IP \\(bu 3\n" + "\n.br\n".join(map(_inline, item.children))
    elif node.type in {"fence", "code_block"}:
        yield f".PP\n.nf\n{escape(node.content.rstrip())}\n.fi"
    else:
        raise ValueError(f"a man page cannot show {node.type}")


def _table(table: SyntaxTreeNode) -> Iterator[str]:
    head, *body = [row for part in table.children for row in part.children]
    keys = [_inline(cell) for cell in head.children] == _KEYS
    for row in body:
        first, *rest = (_inline(cell) for cell in row.children)
        if not keys:
            yield f".TP\n{first}\n" + "\n.br\n".join(cell or "\\ " for cell in rest)
            continue
        if first:
            yield f".SS {first}"
        key, default, meaning = rest
        yield f".TP\n{key}\n{meaning}" + (f" (default: {default})" if default else "")


def _inline(node: SyntaxTreeNode) -> str:
    """Return the text of a block: code and strong text in bold, links as their words."""
    if node.type == "text":
        return escape("x" + node.content)[1:]  # need not be at the start of a line
    if node.type == "code_inline":
        return f"\\fB{escape(node.content)}\\fP"
    if node.type == "softbreak":
        return " "
    text = re.sub(r"^([.'])", r"\\&\1", "".join(map(_inline, node.children)))
    return f"\\fB{text}\\fP" if node.type == "strong" else text
