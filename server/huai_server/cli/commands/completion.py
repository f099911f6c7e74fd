"""`huai-server completion`: print the script that lets a shell complete command lines."""

from huai_program.cli.completion import completion_command

command = completion_command("huai-server")
