"""The parts that the command lines of both programs have in common."""
