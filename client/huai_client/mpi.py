"""The program `huai-client` as an MPI job: `mpiexec -n 9 python -m huai_client.mpi ARGUMENTS`."""

from huai_client.cli.main import main
from huai_program.engine.mpi_engine import run_ranks
from huai_program.garbage import collect_rarely
from huai_program.signals import leave_quietly

if __name__ == "__main__":
    leave_quietly()
    collect_rarely()
    run_ranks(main)
