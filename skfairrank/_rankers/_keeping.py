"""The training of a fit in the file of its `Checkpoint`: kept now and then, and gone on from."""

from __future__ import annotations

import json
import os
from hashlib import blake2b
from pathlib import Path

from skfairrank._rankers._fingerprint import fingerprint, versions
from skfairrank._states import read_state, write_state
from skfairrank._warnings import warn_caller

__all__ = ["Keeper", "check_checkpoint", "open_keeper"]

# Of the contents of files; one more where they change.
_FORMAT = 1


def check_checkpoint(ranker) -> None:
    """Raise ValueError where a fit with these parameters cannot be gone on with."""
    if ranker.solver != "adam":
        raise ValueError(f'Checkpoint keeps steps of solver="adam", and solver is {ranker.solver!r}: leave it out.')
    if ranker.n_init > 1:
        raise ValueError(
            f"Checkpoint keeps one start, and n_init is {ranker.n_init}: fit a ranker with n_init=1 for each random_state, each "
            "with a file of its own, and keep the best."
        )


def open_keeper(checkpoint, ranker, problem, state, streams, *, is_warm: bool) -> Keeper:
    """What keeps a fit in the file of its checkpoint, after a look at what is there.

    Raises
    ------
    ValueError
        If the file belongs to another run, cannot be read, or cannot be written.
    """
    split, every = streams[2], checkpoint.every or max(1, -(-int(ranker.max_iter) // 50))
    of_run = fingerprint(ranker, problem, state, is_warm=is_warm)
    name = f"{type(ranker).__name__}-{blake2b(json.dumps(of_run).encode(), digest_size=8).hexdigest()}"
    path = checkpoint.file_for(name)
    return Keeper(path, of_run, int(every), split)


class Keeper:
    """Writes the state of a fit to its file, and remembers what the file held at the beginning.

    A fit has one stage of training, or with `relax` two, and an end. The file tells in which it was written.

    Parameters
    ----------
    path : Path
    of_run : dict
        The fingerprint.
    every : int
        Steps.
    split : numpy.random.Generator
        Of early stopping, which is not advanced: it is restored from the file.
    """

    def __init__(self, path: Path, of_run: dict, every: int, split):
        self.path, self.of_run, self.every, self.split = path, of_run, every, split
        self.written = _identity(path)  # before it is read: who replaces it from now on is noticed
        self.saved = self._read() if self.written else {}
        if self.saved:
            split.bit_generator.state = self.saved["split"]
        self.stage: dict = {}
        #: Whether a callback ended training before its end, so that the next fit is to go on.
        self.is_cut_short = False

    def saved_in(self, stage: str) -> dict | None:
        """What the file held, if it was written in this stage."""
        return self.saved if self.saved.get("stage") == stage else None

    def begin(self, stage: str, training, early_stopping, **known) -> int:
        """Begin a stage, where the file has left it; returns the number of steps that were taken then.

        Parameters
        ----------
        stage : str
        training : skfairrank._solvers.Training
        early_stopping : EarlyStopping or None
        **known
            What a fit that begins in this stage must know of those before.
        """
        self.stage, self.training, self.early_stopping = {"stage": stage, **known}, training, early_stopping
        saved = self.saved_in(stage)
        if saved is None:
            self.last = 0
            self.write()  # now, so that one need not wait to learn that the file cannot be written
            return 0
        training.restore(saved["training"])
        if early_stopping is not None:
            early_stopping.restore(saved["early_stopping"])
        self.last = training.reached.n_iter
        return self.last

    def next_look(self, n_iter: int) -> int:
        return (n_iter // self.every + 1) * self.every

    def __call__(self, n_iter: int, *, is_cut_short: bool = False) -> None:
        """Called after step `n_iter`, where training goes on or a callback ends it."""
        if is_cut_short or n_iter // self.every > self.last // self.every:
            self.last = n_iter
            self.write()
        self.is_cut_short |= is_cut_short

    def write(self) -> None:
        early_stopping = None if self.early_stopping is None else self.early_stopping.state()
        self._write({**self.stage, "training": self.training.state(), "early_stopping": early_stopping})

    def finish(self, result: dict) -> None:
        """Keep the result, unless a callback ended training before its end."""
        self._write({"stage": "finished", "result": result})

    def _write(self, state: dict) -> None:
        if self.is_cut_short:
            return
        if _identity(self.path) != self.written:
            raise ValueError(
                f"Another fit has written to the checkpoint {str(self.path)!r} meanwhile, so this one ends: give each fit a file "
                "of its own, or all of them a folder."
            )
        state |= {
            "format": _FORMAT,
            "run": self.of_run,
            "versions": versions(),
            "split": self.split.bit_generator.state,
        }
        try:
            write_state(self.path, state)
        except OSError as error:
            raise ValueError(
                f"The checkpoint {str(self.path)!r} cannot be written ({error}): choose a folder with room where you may write."
            ) from error
        self.written = _identity(self.path)

    def _read(self) -> dict:
        name = f"The checkpoint {str(self.path)!r}"
        try:
            saved = read_state(self.path)
        except OSError as error:
            raise ValueError(f"{name} cannot be read ({error}).") from error
        except ValueError as error:
            raise ValueError(f"{error} It is no checkpoint to go on from: delete it to begin anew.") from error
        if saved.get("format") != _FORMAT:
            raise ValueError(
                f"{name} is none of this version of skfairrank: delete it to begin anew, or give another name."
            )
        self._check_run(name, saved["run"])
        before, now = saved["versions"], versions()
        changed = ", ".join(f"{key} {before.get(key)} (now {now[key]})" for key in now if before.get(key) != now[key])
        if changed and saved["stage"] != "finished":
            warn_caller(
                f"{name} was written with {changed}: training goes on, and its last bits may differ from those of a fit that was "
                "not interrupted."
            )
        return saved

    def _check_run(self, name: str, before: dict) -> None:
        """Raise where the file belongs to another run, and say what tells them apart."""
        for key in [*self.of_run, *before]:
            now, was = self.of_run.get(key), before.get(key)
            if now != was:
                raise ValueError(
                    f"{name} belongs to another run: {_DIFFERENCES.get(key, key)} is {now}, and was {was}. Give what it was to "
                    "go on with that run; to begin a new one, give another file or delete this one. (In a search give Checkpoint "
                    "an existing folder: each fit then has a file of its own.)"
                )


_DIFFERENCES = {
    "class": "the class of the ranker",
    "regularizer": "what the regulariser has learned from the data (fair metric, groups, hypothetical rows; if the data are the "
    "same, give a metric that draws random numbers an int as random_state)",
    "start": "the start (of a warm start: the weights of the fit before)",
}


def _identity(path: Path):
    """What changes whenever a file is replaced; None where there is none."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
