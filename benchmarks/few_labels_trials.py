"""Trials of many experiments in one set of workers, the most telling ones first:

    python benchmarks/few_labels_trials.py OUT FILE... [--workers 16] [--device cpu]
                                           [--seconds 550] [--plan main:8,all:4,main:16,all:8]

`tailor bench run` runs one experiment after the other, each with workers that start anew. Where
time is short and settings are many, this runs all of them side by side: of every experiment the
main contenders with the first eight seeds, then all contenders with four, and so on, as --plan
says. It stops after --seconds, and goes on where it stood when it is called again. The rows of each
experiment are packed into OUT/NAME.rows.jsonl.gz (NAME: its file's).
"""

from __future__ import annotations

import argparse
import gzip
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from tailor_experiments.comparison.config import read
from tailor_experiments.comparison.experiment import Contender, Experiment
from tailor_experiments.comparison.parallel import run_all
from tailor_experiments.comparison.rows import ROWS, RUNS, collect
from tailor_experiments.comparison.run import one_trial, prepare, unfinished

#: contenders that every table compares
MAIN = (
    "auto",
    "TAILOR, the paper's",
    "random",
    "random, start and correction",
    "random meta, start and correction",
    "herding, start and correction",
    "margin, start and correction",
    "uncertainty, start and correction",
)
Job = tuple[Experiment, Contender, int, Path, Path]


def read_plan(text: str) -> list[tuple[bool, int]]:
    """ "main:8,all:4" -> [(True, 8), (False, 4)]: whether the main contenders alone, and seeds."""
    steps = []
    for part in text.split(","):
        who, _, trials = part.partition(":")
        if who not in ("main", "all") or not trials.isdecimal():
            raise SystemExit(f"--plan: {part!r} is neither main:N nor all:N")
        steps.append((who == "main", int(trials)))
    return steps


def planned_jobs(
    experiments: dict[Path, Experiment], plan: list[tuple[bool, int]], cache: Path
) -> Iterator[Job]:
    """All trials that lack rows, each once, in the order of the plan."""
    left = {folder: unfinished(experiment, folder) for folder, experiment in experiments.items()}
    planned = set()
    for main_alone, trials in plan:
        for seed in range(trials):
            # All contenders of a setting and seed follow each other: they share its data.
            for folder, experiment in experiments.items():
                for contender, its_seed in left[folder]:
                    key = (folder, contender.label, its_seed)
                    if its_seed != seed or key in planned:
                        continue
                    if main_alone and contender.label not in MAIN:
                        continue
                    planned.add(key)
                    yield experiment, contender, seed, folder, cache


def run_until(jobs: list[Job], workers: int, seconds: float) -> int:
    """Run them until they or the seconds end -> rows that came."""
    deadline = time.monotonic() + seconds
    count = 0
    with closing(run_all(one_trial, jobs, workers)) as rows:
        for _ in rows:
            count += 1
            if time.monotonic() > deadline:
                break
    return count


def pack(folder: Path, name: str, out: Path) -> int:
    """OUT/NAME.rows.jsonl.gz of an experiment's rows -> their number."""
    if not any(folder.glob(f"{RUNS}/*/{ROWS}")):
        return 0
    lines = collect(folder).read_bytes()
    # Without a time in its header the same rows make the same file.
    packed = gzip.compress(lines, mtime=0)
    (out / f"{name}.rows.jsonl.gz").write_bytes(packed)
    return lines.count(b"\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seconds", type=float, default=550)
    parser.add_argument("--plan", type=read_plan, default="main:8,all:4,main:16,all:8")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    cache = options.out / "cache"
    most_trials = max(trials for _, trials in options.plan)
    started = time.monotonic()
    experiments = {}
    for file in options.files:
        experiment = read(file).changed(device=options.device, trials=most_trials)
        folder = options.out / file.stem
        experiments[folder] = prepare(experiment, folder, cache=cache)
    jobs = list(planned_jobs(experiments, options.plan, cache))
    preparing = time.monotonic() - started
    print(f"{len(jobs)} trials to run, prepared in {preparing:.0f} s", flush=True)
    rows = run_until(jobs, options.workers, options.seconds - preparing) if jobs else 0
    for folder, experiment in experiments.items():
        done = experiment.trials * len(experiment.contenders) - len(unfinished(experiment, folder))
        kept = pack(folder, folder.name, options.out)
        print(f"{folder.name}: {done} trials through, {kept} rows")
    print(f"{rows} rows in {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
