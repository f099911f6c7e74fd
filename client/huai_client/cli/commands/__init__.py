"""The commands of `huai-client`, one a module, each named `command` there.

Arguments in, results and exit codes out; a use case does the work.
"""
