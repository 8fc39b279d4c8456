"""`python -m tailor_experiments`: the commands of this package alone, also where it is not
installed and `tailor` does not find them.
"""

from tailor.cli import main
from tailor_experiments.cli.app import app

main(app)
