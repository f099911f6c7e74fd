"""The program `huai-server` as an MPI job: `mpiexec -n 9 python -m huai_server.mpi ARGUMENTS`."""

from huai_program.engine.mpi_engine import run_ranks
from huai_program.garbage import collect_rarely
from huai_program.signals import leave_quietly
from huai_server.cli.main import main

if __name__ == "__main__":
    leave_quietly()
    collect_rarely()
    run_ranks(main)
