"""The name under which the package is installed.

`tailor` on PyPI is another program (a migration tool between version-control systems), so that the
distribution has a longer name than the package that it brings.
"""

from __future__ import annotations

DISTRIBUTION = "tailor-active-learning"


def pip_install(extras: str) -> str:
    """The command that installs one of the package's extras, or several: "web,images".

    >>> pip_install("web")
    "pip install 'tailor-active-learning[web]'"
    """
    return f"pip install '{DISTRIBUTION}[{extras}]'"
