"""What an administrator does with modules; the command line and programs in Python call it."""
