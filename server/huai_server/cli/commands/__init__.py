"""The commands of `huai-server`, one a module, each named `command` there.

They parse arguments, and print results; a use case does the work.
"""
