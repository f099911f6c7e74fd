"""`huai-client notify`: send a test message."""

from huai_client.config.load import load
from huai_program.cli.notify import notify_command

command = notify_command("huai-client", lambda root: load(root).notify)
