# Checked against the compiled module by mypy.stubtest.
