"""The reach of a process that was taken over: the library is loaded into a program that tries.

The program goes into a module as rsync does, and then looks for a way out by every descriptor
that the library keeps.
"""

import ctypes
import os
import shutil
from pathlib import Path

import pytest

from huai_server.fallback.redirect import preload_library
from tests.support.mounting import needs_mounts
from tests.support.processes import run_program
from tests.support.redirecting import Stage
from tests.support.rsyncd import IS_ROOT

needs_chroot = pytest.mark.skipif(not IS_ROOT, reason="only root can chroot")

OUTSIDE = "what stands outside of the mirror"

ESCAPE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A kernel without the call, as far as this program can tell. */
static int forbid(unsigned int number) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 38),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {4, code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, 2, &filter);
}

int main(int count, char **arguments) {
    /* The C library's own, past the hooks: as a process that was taken over calls the kernel. */
    long (*call)(long, ...);
    *(void **)&call = dlsym(dlopen("libc.so.6", RTLD_NOW), "syscall");
    for (int each = 3; each < count; each++)
        if (forbid(strcmp(arguments[each], "landlock") ? 428 : 444))
            return 2;
    if (chroot(arguments[1]) || chdir("/"))
        return 3;
    struct stat status;
    char text[64] = "";
    int listed = open("listed", O_RDONLY);
    if (listed < 0 || read(listed, text, sizeof text - 1) < 1)
        return 4;
    printf("content %s\n", text);
    for (int kept = 3; kept < 1024; kept++) {
        if (call(SYS_fchdir, kept))
            continue;
        printf("kept\n");
        /* At each step: this machine may itself stand in a folder of another one. */
        for (int up = 0; up < 40; up++) {
            if (!call(SYS_newfstatat, AT_FDCWD, arguments[2], &status, 0))
                printf("seen\n");
            int secret = (int)call(SYS_openat, AT_FDCWD, arguments[2], O_RDONLY);
            memset(text, 0, sizeof text);
            if (secret >= 0 && call(SYS_read, secret, text, sizeof text - 1) > 0)
                printf("read %s\n", text);
            if (secret >= 0)
                call(SYS_close, secret);
            if (call(SYS_chdir, ".."))
                break;
        }
        int folder = (int)call(SYS_openat, AT_FDCWD, ".", O_RDONLY | O_DIRECTORY);
        if (folder >= 0 && !call(SYS_newfstatat, folder, "proc", &status, 0))
            printf("listed\n");
    }
    return 0;
}
"""

STRAY = r"""
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* As rsync before 3.5 goes about: by paths from the top of the module, symlinks followed. */
int main(int count, char **arguments) {
    struct stat status;
    if (chdir(arguments[1]))
        return 3;
    for (int each = 2; each < count; each++) {
        const char *path = arguments[each];
        DIR *folder;
        if (!lstat(path, &status))
            printf("lstat %s\n", path);
        if (!stat(path, &status))
            printf("stat %s\n", path);
        if ((folder = opendir(path)))
            printf("opendir %s\n", path);
        if (!chdir(path))
            printf("chdir %s\n", path);
        if (chdir(arguments[1]))
            return 4;
    }
    return 0;
}
"""


@pytest.fixture
def stage(short_path: Path) -> Stage:
    stage = Stage(short_path)
    stage.write("listed", b"as listed")
    stage.write("inner/file", b"inner")
    (stage.real.parent / "secret").write_text(OUTSIDE)
    (stage.real / "out").symlink_to("../..")
    (stage.real / "absolute").symlink_to(stage.real.parent)
    (stage.real / "link").symlink_to("inner")
    stage.list_it()
    return stage


def compile_program(source: str, folder: Path) -> Path:
    (folder / "program.c").write_text(source)
    program = folder / "program"
    run_program("gcc", "-O1", "-Wall", folder / "program.c", "-o", program, check=True)
    return program


def run_preloaded(*command: str | Path) -> list[str]:
    done = run_program(*command, env={**os.environ, "LD_PRELOAD": str(preload_library())})
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    return done.stdout.splitlines()


def try_escape(stage: Stage, *, mounts: bool, landlock: bool) -> list[str]:
    """Return the output of a program that tries to leave, where only these defences exist."""
    program = compile_program(ESCAPE, stage.real.parent)
    secret = str(stage.real.parent / "secret").lstrip("/")
    lacking = [*([] if mounts else ["mounts"]), *([] if landlock else ["landlock"])]
    lines = run_preloaded(program, stage.places.served, secret, *lacking)
    assert lines[0] == "content as listed"
    assert lines.count("kept") >= 3  # it has something to try
    return [line for line in lines[1:] if line != "kept"]


def has_landlock() -> bool:
    return int(ctypes.CDLL(None).syscall(444, None, 0, 1)) > 0


@needs_mounts
@pytest.mark.parametrize("landlock", [True, False])
def test_a_process_that_was_taken_over_stays_in_its_chroot(stage: Stage, *, landlock: bool) -> None:
    """Detached mounts are enough."""
    assert try_escape(stage, mounts=True, landlock=landlock) == []


@needs_chroot
@pytest.mark.skipif(not has_landlock(), reason="this kernel has no Landlock")
def test_landlock_lets_nothing_be_read(stage: Stage) -> None:
    # Looking at a path that is known remains, as is documented.
    assert set(try_escape(stage, mounts=False, landlock=True)) <= {"seen"}


@needs_chroot
def test_with_neither_it_could_leave(stage: Stage) -> None:
    """As is documented too; and the proof that the program above does try."""
    lines = try_escape(stage, mounts=False, landlock=False)
    assert f"read {OUTSIDE}" in lines
    assert "listed" in lines


def test_without_a_chroot_no_symlink_leads_out(stage: Stage) -> None:
    program = compile_program(STRAY, stage.real.parent)
    for path in ("out", "out/secret", "absolute", "absolute/secret", "link/../../../secret"):
        # What a symlink is may be seen, and nothing that it leads to.
        own = [] if "/" in path else [f"lstat {path}"]
        assert run_preloaded(program, stage.places.served, path) == own


def test_symlinks_within_the_module_are_followed(stage: Stage) -> None:
    program = compile_program(STRAY, stage.real.parent)
    lines = run_preloaded(program, stage.places.served, "link", "link/file", "inner", ".")
    assert lines == [
        *("lstat link", "stat link", "opendir link", "chdir link"),
        *("lstat link/file", "stat link/file"),
        *("lstat inner", "stat inner", "opendir inner", "chdir inner"),
        *("lstat .", "stat .", "opendir .", "chdir ."),
    ]


def test_without_a_chroot_no_size_of_a_file_outside_is_told(stage: Stage) -> None:
    (stage.real / "size").symlink_to(stage.real.parent / "secret")
    shutil.rmtree(stage.places.generations)
    stage.list_it()
    with stage.daemon(use_chroot="no") as url:
        listed = run_program("rsync", "-L", url)
        assert stage.fetch(url).returncode == 0
    assert " size" not in listed.stdout
    assert " link" in listed.stdout
