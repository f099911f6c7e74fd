"""The parts that both programs share: configuration files, locks, output, exit."""
