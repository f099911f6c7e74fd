"""The disk priority of this thread and of those that it starts."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor

from huai_program.priority import idle_disk, io_priority, lower_priority

IDLE = 3 << 13


def test_the_disk_is_idle_inside_and_as_before_outside() -> None:
    before = io_priority()
    assert before != IDLE
    with idle_disk():
        assert io_priority() == IDLE
        priorities: list[int | None] = []
        thread = threading.Thread(target=lambda: priorities.append(io_priority()))
        thread.start()
        thread.join()
        assert priorities == [IDLE]
    assert io_priority() == before


def test_only_the_thread_that_gives_way_does() -> None:
    before = os.getpriority(os.PRIO_PROCESS, 0)
    with ThreadPoolExecutor(1, initializer=lower_priority) as pool:
        assert pool.submit(os.getpriority, os.PRIO_PROCESS, 0).result() == 19
    assert os.getpriority(os.PRIO_PROCESS, 0) == before
