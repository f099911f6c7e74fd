"""Code that both programs share besides the format: configuration files, locks, output, exit.

The only part of `huai_schema` with side effects: it reads and writes files, holds locks and prints.
The code of the format never imports it.
"""
