"""Builds the parts that are not Python; everything else is configured in pyproject.toml.

The engine (`native/`) is needed. The preload library is optional: without a C compiler huai
is installed without it, and reports that the fallback for plain rsync clients needs it. It is
declared as a Python module, but preloaded into rsync.

If `requirements/set-up` has already built both libraries from the same sources, it sets
HUAI_LIBRARIES=built, and nothing is built here.
"""

import os

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools_rust import Binding, RustExtension

_REDIRECT = "server/huai_server/fallback/redirect/c"
_REDIRECTION = (
    *("binding", "boundary", "confining"),
    *("hooks_list", "hooks_open", "hooks_options", "hooks_path", "hooks_read"),
    *("opening", "reading", "system", "translating"),
)


class _BuildExtension(build_ext):
    """A linker without the run path of the builder's Python, which another user may own."""

    def build_extensions(self) -> None:
        """Remove the run path from the linker's command line."""
        words = self.compiler.linker_so
        self.compiler.set_executable("linker_so", [word for word in words if "-rpath" not in word])
        super().build_extensions()


_RUST_EXTENSIONS = [
    RustExtension(
        "huai_native._native",
        "native/python/Cargo.toml",
        binding=Binding.PyO3,
        cargo_manifest_args=["--locked"],
        debug=False,  # in an editable install too: a slow engine would pass for a fast one
        py_limited_api=True,
    )
]
_EXTENSIONS = [
    Extension(
        "huai_server.fallback.redirect._redirect",
        sources=[f"{_REDIRECT}/{part}.c" for part in _REDIRECTION],
        define_macros=[("_GNU_SOURCE", None)],
        extra_compile_args=[
            *("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Wshadow", "-pthread"),
            *("-fstack-protector-strong", "-fvisibility=hidden"),
            # A fortified header would replace the very functions that are defined here.
            "-U_FORTIFY_SOURCE",
        ],
        extra_link_args=["-pthread", "-Wl,-z,relro,-z,now", "-s"],
        optional=True,
        py_limited_api=True,  # it uses no part of Python: one wheel serves every version
    ),
]
_BUILT = os.environ.get("HUAI_LIBRARIES") == "built"

setup(
    cmdclass={"build_ext": _BuildExtension},
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
    rust_extensions=[] if _BUILT else _RUST_EXTENSIONS,
    ext_modules=[] if _BUILT else _EXTENSIONS,
)
