"""Builds what is not Python; everything else about the project stands in pyproject.toml.

The engine (`native/`) is needed. The C libraries are optional: without a C compiler huai installs
all the same, and says that the fallback for plain rsync clients needs them. None of those is a
Python module in truth: they are loaded by ctypes, or preloaded into rsync.
"""

from setuptools import Extension, setup
from setuptools_rust import Binding, RustExtension

_ATTR = "server/huai_server/fallback/attr/c"
_REDIRECT = "server/huai_server/fallback/redirect/c"

_MAKER = ("attributes", "entry", "listing", "maker", "opening", "place")
_REDIRECTION = (
    *("binding", "boundary", "confining"),
    *("hooks_open", "hooks_path", "hooks_read"),
    *("opening", "reading", "system", "translating"),
)


def library(
    name: str,
    sources: list[str],
    *,
    standard: str = "c11",
    fortified: tuple[str, ...] = ("-D_FORTIFY_SOURCE=2",),
    **settings: object,
) -> Extension:
    """One library, with the warnings and the hardening that all of them have."""
    return Extension(
        f"huai_server.{name}",
        sources=sources,
        extra_compile_args=[
            f"-std={standard}",
            *("-O2", "-Wall", "-Wextra", "-Wshadow", "-pthread"),
            *("-fstack-protector-strong", "-fvisibility=hidden", *fortified),
        ],
        extra_link_args=["-pthread", "-Wl,-z,relro,-z,now"],
        optional=True,
        py_limited_api=True,  # they use no part of Python: one wheel serves every version
        **settings,
    )


setup(
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
    rust_extensions=[
        RustExtension(
            "huai_native._native",
            "native/python/Cargo.toml",
            binding=Binding.PyO3,
            cargo_manifest_args=["--locked"],
            debug=False,  # in an editable install too: a slow engine would pass for a fast one
            py_limited_api=True,
        )
    ],
    ext_modules=[
        library(
            "fallback.attr._maker",
            [f"{_ATTR}/{part}.c" for part in _MAKER],
        ),
        library(
            "fallback.redirect._redirect",
            [f"{_REDIRECT}/{part}.c" for part in _REDIRECTION],
            standard="gnu11",
            define_macros=[("_GNU_SOURCE", None)],
            # A fortified header would replace the very functions that are defined here.
            fortified=("-U_FORTIFY_SOURCE",),
        ),
    ],
)
