"""The Link header of static files."""

from huai_client.metadata.content_link import content_url
from huai_server.http.git.static_files import content_link


def test_a_link_is_relative_to_the_file() -> None:
    for place in ("blocks/ab/" + "ab" * 32, "static/head"):
        name, link = content_link("m", place)
        assert name == b"link"
        file = f"https://h.example/huai/git/m.git/{place}"
        assert content_url(file, link.decode()) == "https://h.example/huai/content/m/"


def test_other_links_name_no_content() -> None:
    relation = '; rel="urn:x-huai:content"'
    index = "https://h/git/m.git/blocks/ab/cd"
    for link in ("", "<../x/>", "<x>; rel=next", "<http://h/>" + relation, "<ftp://h/>" + relation):
        assert content_url(index, link) == "", link
    assert content_url(index, "<x>; rel=next, <//o/m>" + relation) == "https://o/m"
