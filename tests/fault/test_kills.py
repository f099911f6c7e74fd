"""A run that is killed before a system call, or refused one, harms nothing; the next one goes on.

`./dev test` cuts each run at two points, which the commit chooses or `HUAI_TEST_SEED`;
`./dev test-long` at every one.
"""

import errno
from typing import Any

import pytest

from tests.fault.killing import KILLED, Ground, Scenario, refused, try_faults
from tests.fault.sampling import LONG
from tests.fault.scenarios import (
    commit,
    content,
    export,
    fallback,
    maintain,
    patch,
    pending,
    plain,
    publishing,
    served,
    shards,
    sync,
    trash,
)
from tests.support.system_calls import CHANGING

FULL = refused(errno.ENOSPC)
FULL_FROM_THERE = refused(errno.ENOSPC, onward=True)
ENDS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)
"""The file system is at its end: no further step makes sense."""
FORBIDDEN = (errno.EACCES, errno.EPERM)
OPENING = (*CHANGING, "open")
COMMITTING = [KILLED, *refused(errno.ENOSPC, errno.EIO, calls=OPENING)]

# What is there before, the run, what holds right after it was cut, and what the next run reaches.
# fmt: off
SCENARIOS: tuple[Scenario[Any], ...] = (
    # On the server.
    Scenario("commit, the first", commit.first, commit.run,
             commit.is_old_or_new, [commit.is_finished], {"old", "new"}, COMMITTING),
    Scenario("commit, of changes", commit.second, commit.run,
             commit.is_old_or_new, [commit.is_finished], {"old", "new"}, COMMITTING),
    Scenario("commit, of a large directory", commit.large_directory, commit.run,
             commit.parts_are_written, [commit.is_finished], {"", "in parts"},
             [KILLED._replace(calls=("write",))]),
    Scenario("commit, of shards by an engine", shards.by_engine, shards.run, shards.is_old_or_new,
             [shards.is_continued], {"old", "new"}, COMMITTING),
    Scenario("commit, of shards by commands", shards.by_commands, shards.run, shards.is_old_or_new,
             [shards.is_continued, commit.is_finished], {"old", "new"}, COMMITTING),
    Scenario("commit, of a list", commit.listed, commit.run_listing,
             commit.list_commits_all, [commit.later_lists_are_enough], {"", commit.NO_RECORD}),
    Scenario("commit, then of a list", commit.not_listed, commit.run_listing,
             commit.list_commits_all, [commit.later_lists_are_enough], {"", commit.NO_RECORD}),
    Scenario("digests, then a list", commit.digests_later, commit.run_listing,
             commit.list_commits_all, [commit.later_lists_are_enough], {"", commit.NO_RECORD}),
    Scenario("commit, that waits for a signature", pending.to_be_made, pending.run,
             pending.last_or_waiting, [pending.can_be_signed], (), [KILLED, *FULL_FROM_THERE]),
    Scenario("signature, that is added", pending.to_be_completed, pending.run,
             pending.waiting_or_next, [pending.is_complete], {"waits", "complete"},
             [KILLED, *FULL_FROM_THERE]),
    Scenario("signature, by an operator", pending.to_be_signed, pending.run,
             pending.former_is_known, [pending.no_second_signature], {"2", "3"},
             [KILLED, *FULL_FROM_THERE]),
    Scenario("export, the first", export.first, export.run,
             export.each_list_is_old_or_new, [export.all_lists_are_new], {"amid"},
             [KILLED, *refused(errno.ENOSPC, errno.EIO, errno.EACCES)]),
    Scenario("export, over the last", export.second, export.run,
             export.each_list_is_old_or_new, [export.all_lists_are_new], {"amid"}),
    Scenario("commit, that exports into the tree", export.in_tree, export.commit,
             export.is_sound, [export.lists_name_what_is_there], (),
             [KILLED._replace(calls=("rename",))]),
    Scenario("maintain, merging", maintain.to_merge, maintain.run,
             maintain.no_commit_is_lost, [maintain.is_maintained], (), COMMITTING),
    Scenario("maintain, dropping", maintain.to_drop, maintain.run,
             maintain.no_commit_is_lost, [maintain.is_maintained], (), COMMITTING),
    Scenario("digest", maintain.Digesting, maintain.Digesting.run,
             maintain.Digesting.right_after, [maintain.Digesting.is_finished], {"old", "new"},
             [KILLED, *FULL]),
    Scenario("scrub", maintain.Scrubbing, maintain.Scrubbing.run,
             maintain.Scrubbing.right_after, [maintain.Scrubbing.is_finished], (),
             [KILLED, *FULL]),
    Scenario("publish", served.published, served.publish,
             served.head_can_be_followed, [served.head_is_new], {"old", "new"}, [KILLED, *FULL]),
    Scenario("relay", served.Relay, served.Relay.hand_over,
             served.Relay.is_old_or_new, [served.Relay.is_handed_over], {"1", "3"}),
    Scenario("fallback, building", fallback.to_build, fallback.run,
             fallback.each_entry_is_old_or_new, [fallback.is_listed], {"nothing"}),
    Scenario("fallback, updating", fallback.Served, fallback.run,
             fallback.a_client_loses_nothing, [fallback.a_client_gets_all], {"refused", "served"}),
    Scenario("fallback, deleting", fallback.Deletion, fallback.Deletion.run,
             fallback.Deletion.something_is_left, [fallback.Deletion.all_is_gone], {True}),
    # On the client.
    Scenario("fetch", served.Fetching, served.Fetching.run,
             served.Fetching.refs_name_what_is_whole, [served.Fetching.is_fetched], (),
             [KILLED, *FULL]),
    Scenario("fetch, by git", served.FetchingByGit, served.FetchingByGit.run,
             served.FetchingByGit.refs_name_what_is_whole, [served.FetchingByGit.is_fetched], (),
             [KILLED, *FULL]),
    Scenario("content, copied from a path", content.Copying, content.Copying.run,
             content.Copying.says_why, [content.Copying.all_is_ready], (),
             [KILLED, *refused(errno.ENOSPC, errno.EIO, onward=True),
              *refused(errno.EPERM, calls=("chmod", "owner"))]),
    Scenario("content, reused", content.reusing, content.Reusing.run,
             content.Reusing.only_right_content_is_ready, [content.Reusing.all_is_ready], (),
             [KILLED, *refused(errno.ENOSPC, errno.EDQUOT, errno.EROFS, onward=True),
              *refused(errno.EIO, errno.EMLINK, errno.EXDEV, *FORBIDDEN)]),
    Scenario("content, reused by threads", content.reusing_by_three, content.Reusing.run,
             content.Reusing.only_right_content_is_ready, [content.Reusing.all_is_ready]),
    Scenario("plan, executed", publishing.Changing, publishing.Changing.run,
             publishing.Changing.nothing_is_lost, [publishing.Changing.is_finished], {"old", "new"},
             [KILLED, *refused(*ENDS, onward=True), *refused(*ENDS, *FORBIDDEN)]),
    Scenario("plan, executed without root", publishing.by_nobody, publishing.Changing.run,
             publishing.Changing.nothing_is_lost, [publishing.Changing.is_finished],
             {"old", "new"}),
    Scenario("plan, of new directories", publishing.WholeDirectories,
             publishing.WholeDirectories.run, publishing.WholeDirectories.nothing_is_extraneous,
             [publishing.WholeDirectories.is_finished], (),
             [KILLED, *refused(errno.EPERM, errno.EIO, errno.EEXIST)]),
    Scenario("sync, from an older commit", sync.from_the_first, sync.run,
             sync.index_is_last, [sync.finished, sync.at_the_third, sync.back_at_the_first],
             {"old", "new"}, everywhere=True),
    Scenario("sync, from nothing", sync.from_nothing, sync.run,
             sync.index_is_last, [sync.finished, sync.at_the_third, sync.back_at_the_first],
             {"old", "new"}, everywhere=True),
    Scenario("sync, with copies", sync.copying, sync.run, sync.anything,
             [*sync.PARTED, sync.on_and_back]),
    Scenario("sync, with hardlinks", sync.hardlinking, sync.run, sync.anything,
             [sync.finished, sync.at_the_third, sync.back_at_the_first, sync.on_and_back]),
    Scenario("sync, with a hook", sync.Hooked, sync.run, sync.index_is_last,
             [sync.each_change_is_told], {"old", "new"}, everywhere=True),
    Scenario("sync, under another filter", sync.filtered, sync.run, sync.anything,
             [sync.follows_it, sync.follows_the_one_before, sync.follows_none]),
    Scenario("sync, newer under another filter", sync.filtered_and_newer, sync.run, sync.anything,
             [sync.follows_it, sync.follows_the_one_before, sync.follows_none]),
    Scenario("sync, of deletions that waited", sync.deletions_that_waited, sync.run, sync.anything,
             [sync.follows_it]),
    Scenario("sync, of a signed module", served.Pinning, served.Pinning.run,
             served.Pinning.pinned_before_named, [served.Pinning.is_pinned], {"nothing", "pinned"},
             everywhere=True),
    Scenario("sync, of a list of all", plain.of_all, plain.run, sync.anything,
             [plain.is_finished]),
    Scenario("sync, of equal files of a list", plain.of_equal_files, plain.run, sync.anything,
             [plain.is_finished_without_links]),
    Scenario("sync, of a published list", plain.of_changes, plain.run, sync.anything,
             [plain.is_finished]),
    Scenario("sync, of events", plain.of_events, plain.run, sync.anything,
             [plain.is_finished]),
    Scenario("sync, of a specification of mtree", plain.of_mtree, plain.run, sync.anything,
             [plain.is_finished_without_links]),
    Scenario("sync, of lines that a program prints", plain.of_lines, plain.run, sync.anything,
             [plain.is_finished_without_links]),
    Scenario("sync, of a file in place", patch.Patching, patch.Patching.run,
             patch.Patching.journal_or_version,
             [patch.Patching.is_finished, patch.Patching.is_finished_after_the_journal]),
    Scenario("sync, with a trash", trash.to_sync, trash.run,
             trash.is_begun, [trash.finished_then_undone, trash.undone_then_synced], {True, False}),
    Scenario("sync, of deletions that are due", trash.deletions_that_are_due, trash.run,
             trash.is_begun, [trash.kept_in_the_trash]),
    Scenario("undo", trash.to_undo, trash.run, trash.is_begun,
             [trash.finished_by_a_sync, trash.finished_by_an_undo, trash.given_up, trash.cut_twice],
             {True, False}),
    Scenario("undo, of other settings", trash.to_undo_settings, trash.run, trash.is_begun,
             [trash.finished_by_a_sync, trash.finished_by_an_undo, trash.given_up, trash.cut_twice],
             {True, False}),
)
# fmt: on


@pytest.mark.timeout(LONG)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=[each.name for each in SCENARIOS])
def test_a_run_is_cut(scenario: Scenario[Any], ground: Ground) -> None:
    try_faults(scenario, ground)
