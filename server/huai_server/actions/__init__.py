"""The actions of an administrator, for the command line and for programs in Python."""
