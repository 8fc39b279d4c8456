"""MkDocs hooks: pages that are made while the site is built, and links that leave docs/.

Made pages are those of every registered class (reference_pages.py), the scripts in examples/, and
the Markdown files at the root of the repository. A link to a file that has no page becomes plain
text.
"""

from __future__ import annotations

import json
import os
import posixpath
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "docs"))

import reference_pages  # noqa: E402
import toy_pool_figures  # noqa: E402
from mkdocs.structure.files import File  # noqa: E402

#: files outside docs/ that have a page: where they lie -> the page, below docs/
OUTSIDE = {
    "benchmarks/README.md": "project/measurements.md",
    "examples/README.md": "project/examples.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
}
TITLES = {
    "project/measurements.md": "Measurements",
    "project/examples.md": "Examples",
    "project/changelog.md": "Changelog",
    "project/contributing.md": "Contributing",
    "project/security.md": "Security",
}
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


def on_config(config: Any) -> Any:
    for section in config.nav:
        if "Project" in section:
            section["Project"] = [{title: page} for page, title in TITLES.items()]
        if "Reference" in section:
            _add_reference_sections(section["Reference"])
    return config


def _add_reference_sections(reference: list[Any]) -> None:
    before_python = next(i for i, item in enumerate(reference) if "Python" in item)
    for section in reversed(reference_pages.REFERENCE_SECTIONS):
        pages: list[Any] = [f"reference/{section.folder}/index.md"]
        for name in section.registry.builtin:
            pages.append({name: reference_pages.path(section, name)})
        reference.insert(before_python, {section.title: pages})


def on_files(files: Any, config: Any) -> Any:
    for uri, content in generated().items():
        files.append(File.generated(config, uri, content=content))
    return files


def generated() -> dict[str, str | bytes]:
    """Every made file: its path below docs/ -> its content."""
    made: dict[str, str | bytes] = {}
    for section in reference_pages.REFERENCE_SECTIONS:
        made[f"reference/{section.folder}/index.md"] = reference_pages.overview(section)
    for section, name in reference_pages.entries():
        made[reference_pages.path(section, name)] = reference_pages.page(section, name)
        if section.folder == "families":
            made[reference_pages.figure_path(name)] = toy_pool_figures.draw(name)
    for source, page in OUTSIDE.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        if source == "examples/README.md":
            text += _sources_of_examples()
        made[page] = text
    return made


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    uri = page.file.src_uri
    sources = {page: source for source, page in OUTSIDE.items()}
    source = sources.get(uri, f"docs/{uri}")

    def replaced(match: re.Match[str]) -> str:
        image, text, target = match.groups()
        link = site_link(source, uri, target)
        return text if link is None else f"{image}[{text}]({link})"

    # Fenced code stays as it is.
    pieces = re.split(r"(^```.*?^```$)", markdown, flags=re.DOTALL | re.MULTILINE)
    pieces[::2] = [LINK.sub(replaced, piece) for piece in pieces[::2]]
    return "".join(pieces)


def site_link(source: str, uri: str, target: str) -> str | None:
    """Where a link leads on the site, or None where the site does not have it.

    source  the file that holds the link, below the repository's root
    uri     that file's page, below docs/
    target  the link as it stands in the file
    """
    if re.match(r"[a-z]+:|#", target):
        return target
    path, hash_sign, anchor = target.partition("#")
    aim = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    if aim.startswith("docs/"):
        page = aim.removeprefix("docs/")
    elif aim in OUTSIDE:
        page = OUTSIDE[aim]
    elif aim == "README.md":
        page = "index.md"
    elif aim.startswith("examples/"):
        page = OUTSIDE["examples/README.md"]
        hash_sign, anchor = "#", posixpath.basename(aim).replace(".", "")
    else:
        return None
    return os.path.relpath(page, posixpath.dirname(uri) or ".") + hash_sign + anchor


def _sources_of_examples() -> str:
    blocks = []
    for script in sorted((ROOT / "examples").glob("*.py")):
        blocks.append(f"\n## {script.name}\n\n```python\n{script.read_text(encoding='utf-8')}```\n")
    for notebook in sorted((ROOT / "examples").glob("*.ipynb")):
        blocks.append(f"\n## {notebook.name}\n\n{_notebook(notebook)}\n")
    return "".join(blocks)


def _notebook(path: Path) -> str:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    blocks = []
    for cell in cells:
        text = "".join(cell["source"])
        # A heading of the notebook must not become one of the page.
        text = re.sub(r"^#+ (.*)$", r"**\1**", text) if cell["cell_type"] == "markdown" else text
        blocks.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
    return "\n\n".join(blocks)
