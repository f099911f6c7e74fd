"""The program `huai-server`: arguments in; text, JSON and exit codes out."""
