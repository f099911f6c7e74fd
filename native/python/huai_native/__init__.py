"""The native engine: what runs once for each entry, in Rust (`native/`).

`huai_native._native` is the compiled module; its functions stand in `_native.pyi`.
"""
