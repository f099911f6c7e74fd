from pathlib import Path

from huai_server.http.git.reply_cache import Key, ReplyCache


def key(number: int) -> Key:
    return Key(Path("/r"), b"%d" % number, 2, advert=False, request=b"")


def test_the_least_recently_used_leaves_first() -> None:
    cache = ReplyCache(16_000)
    for number in range(10):
        cache.put(key(number), b"x" * 1000)
        assert cache.get(key(0)) is not None
    present = [number for number in range(10) if cache.get(key(number)) is not None]
    assert present == list(range(10))
    cache.put(key(10), b"x" * 1000)
    assert cache.get(key(0)) is None
    assert cache.get(key(10)) is not None
    assert cache.size <= 16_000


def test_memory_is_bounded_with_tiny_replies_too() -> None:
    cache = ReplyCache(100_000)
    for number in range(5000):
        cache.put(key(number), b"")
    assert sum(cache.get(key(number)) is not None for number in range(5000)) < 200


def test_replacing_counts_once() -> None:
    cache = ReplyCache(16_000)
    cache.put(key(1), b"old")
    size = cache.size
    cache.put(key(1), b"new")
    assert (cache.get(key(1)), cache.size) == (b"new", size)


def test_what_is_too_large_is_left_out() -> None:
    cache = ReplyCache(16_000)
    cache.put(key(1), b"x" * (cache.largest + 1))
    assert cache.get(key(1)) is None
    nothing = ReplyCache(0)
    nothing.put(key(1), b"")
    assert nothing.get(key(1)) is None
