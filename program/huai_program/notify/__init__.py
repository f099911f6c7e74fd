"""Notifies an administrator of failures by mail, by a web hook, or by a program.

`streak` counts failures on the disk, `notification` is the text, `send` delivers it, and `notifier`
composes them around a piece of work.
"""
