"""`huai-server notify`: send a test message."""

from huai_program.cli.notify import notify_command
from huai_server.config.load import load

command = notify_command("huai-server", lambda root: load(root).notify)
