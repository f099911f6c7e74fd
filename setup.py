"""Builds the native scanner; everything else about the project stands in pyproject.toml.

Optional: without a C compiler huai installs all the same and scans in Python.
"""

from setuptools import Extension, setup

_SCAN = "server/huai_server/scan"
_PARTS = ("buffer", "directory", "filter", "leaf", "names", "nodes", "opening", "owners", "scanner")
_HARDENING = ["-fstack-protector-strong", "-D_FORTIFY_SOURCE=2", "-fvisibility=hidden"]

setup(
    ext_modules=[
        Extension(
            "huai_server.scan._scanner",
            sources=[f"{_SCAN}/c/{part}.c" for part in _PARTS],
            depends=[f"{_SCAN}/c/{part}.h" for part in _PARTS],
            extra_compile_args=["-std=c11", "-O2", "-Wall", "-Wextra", "-pthread", *_HARDENING],
            extra_link_args=["-pthread", "-Wl,-z,relro,-z,now"],
            optional=True,
        )
    ]
)
