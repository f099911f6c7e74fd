"""Tells an administrator of failures: by mail, by a web hook, or by a program of theirs.

`streak` counts failures on the disk, `notification` says what one is told, `send` tells it, and
`notifier` composes them around a piece of work.
"""
