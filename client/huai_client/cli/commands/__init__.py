"""The commands of `huai-client`, each the `command` of a module.

Arguments in, results and exit codes out; a use case does the work.
"""
