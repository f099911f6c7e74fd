"""Runs tasks on other processes, of this machine or of others.

`signs` has what each process needs, `tasks` what the one that distributes them does.
"""

ENGINE = r"local://(?P<processes>[1-9][0-9]{0,3})|dask://(?P<address>[^\s/]*)|mpi://"
"""A pattern for the URL of an engine."""
