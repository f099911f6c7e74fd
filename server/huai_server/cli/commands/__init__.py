"""The commands of `huai-server`, one a module, each named `command` there.

Arguments in, results and exit codes out; a use case does the work.
"""
