"""Makes docs/data/applicants.csv, the table of *Start here*: applicants for openings, as a personnel department would keep them.

    python docs/data/make_applicants.py

writes the very same file each time. The people are invented. What was done to them is known, so that the lesson of the page can
be checked (tests/test_applicants.py):

- An ability is drawn for each applicant, from one distribution for people of all three origins.
- The timed test and the puzzles measure it with an error, and both are lowered for people from the south, and more for people
  from abroad. The work sample is not.
- The panel's grade follows ability, experience and degree, and understates the same people.
- The city goes along with the origin a little. Degrees, experience, dates and what is missing have nothing to do with it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

N_OPENINGS = 150
ORIGINS = {"north": 0.5, "south": 0.3, "abroad": 0.2}
MARKS = ["timed_test", "puzzles", "work_sample"]
#: How much each mark is lowered for whom, in standard deviations of ability.
LOWERED = {"north": [0.0, 0.0, 0.0], "south": [0.9, 0.7, 0.0], "abroad": [1.8, 1.4, 0.0]}
#: How much the panel understates whom, in the same unit.
GRADED_DOWN = {"north": 0.0, "south": 0.4, "abroad": 0.8}
#: Standard deviation of the error of each mark.
ERRORS = np.array([0.6, 0.6, 0.4])
#: Where the grade goes up by one.
GRADES = [0.0, 0.9, 1.7]
DEGREES = ["school", "bachelor", "master", "doctorate"]
CITIES = ["Ashby", "Brook", "Carrow", "Dunmore"]
CITIES_OF = {"north": [0.2, 0.25, 0.25, 0.3], "south": [0.35, 0.25, 0.2, 0.2], "abroad": [0.25, 0.25, 0.25, 0.25]}


def make_people(seed: int = 7) -> pd.DataFrame:
    """The applicants as they are, with what no table has: the `ability`, and the marks before they are lowered (`fair_...`)."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(4, 23, N_OPENINGS)
    opening = np.repeat([f"2024-{number:03d}" for number in range(1, N_OPENINGS + 1)], sizes)
    n = len(opening)
    origin = rng.choice(list(ORIGINS), n, p=list(ORIGINS.values()))
    ability = rng.normal(size=n)
    years = rng.gamma(2.0, 3.0, n)
    measured = ability[:, None] + ERRORS * rng.normal(size=(n, 3))
    degree = np.digitize(0.5 * ability + rng.normal(size=n), [-0.8, 0.5, 1.7])
    suits = ability + 0.12 * (years - 6.0).clip(-6, 6) + 0.15 * (degree - 1)
    opened = np.repeat(rng.integers(0, 330, N_OPENINGS), sizes)
    people = pd.DataFrame(
        {
            "opening": opening,
            "applicant": [f"A{number:04d}" for number in rng.permutation(n)],
            "applied": pd.Timestamp("2024-01-08") + pd.to_timedelta(opened + rng.integers(0, 28, n), unit="D"),
            "origin": origin,
            "city": "",
            "degree": np.array(DEGREES)[degree],
            "years": years.round(1),
        }
    )
    for name, shares in CITIES_OF.items():
        people.loc[origin == name, "city"] = rng.choice(CITIES, (origin == name).sum(), p=shares)
    missing = rng.random((n, 4)) < [0.06, 0.1, 0.08, 0.03]
    for prefix, lowered in (("", np.array([LOWERED[name] for name in origin])), ("fair_", 0.0)):
        marks = [prefix + mark for mark in MARKS]
        people[marks] = (62 + 12 * (measured - lowered)).round().clip(0, 100)
        people[marks] = people[marks].mask(missing[:, :3])
    people["years"] = people["years"].mask(missing[:, 3])
    people["ability"] = ability
    graded_down = people["origin"].map(GRADED_DOWN)
    seen = suits + 0.3 * rng.normal(size=n) - (graded_down - graded_down.mean())
    people["grade"] = np.digitize(seen, GRADES)
    hired = seen.groupby(opening).idxmax()  # a panel finds somebody for each opening
    people.loc[hired, "grade"] = people.loc[hired, "grade"].clip(lower=1)
    people["known_origin"] = people["origin"].mask(rng.random(n) < 0.05)  # not everybody says where they come from
    return people


def make_table(seed: int = 7) -> pd.DataFrame:
    """What the personnel department has of them."""
    columns = ["opening", "applicant", "applied", "origin", "city", "degree", "years", *MARKS, "grade"]
    table = make_people(seed).drop(columns="origin").rename(columns={"known_origin": "origin"})[columns]
    table[MARKS] = table[MARKS].astype("Int64")
    return table


def main() -> None:
    path = Path(__file__).with_name("applicants.csv")
    make_table().to_csv(path, index=False, date_format="%Y-%m-%d", lineterminator="\n")
    print(path)


if __name__ == "__main__":
    main()
