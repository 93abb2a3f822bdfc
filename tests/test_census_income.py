"""Census income: forms of the file, people and their twins."""

import gzip
import io

import numpy as np
import pandas as pd
import pytest
from _data import shared_data

from skfairrank.datasets import load_census_income

pytestmark = pytest.mark.once

# As UCI has it: no names, a blank after each comma, a last empty line; the third person comes twice.
UCI = """\
39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40, United-States, <=50K
37, Private, 284582, Masters, 14, Married-civ-spouse, Exec-managerial, Wife, White, Female, 0, 1902, 40, United-States, >50K
52, ?, 209642, HS-grad, 9, Married-civ-spouse, ?, Husband, Black, Male, 0, 0, 45, ?, >50K
52, ?, 209642, HS-grad, 9, Married-civ-spouse, ?, Husband, Black, Male, 0, 0, 45, ?, >50K

"""
NAMES = (
    "age,workclass,fnlwgt,education,education-num,marital-status,occupation,relationship,race,sex,capital-gain,capital-loss,"
    "hours-per-week,native-country,income"
)
NUMBERS = ["age", "education_num", "capital_gain", "capital_loss", "hours_per_week"]


@pytest.mark.parametrize("form", ["dashes", "dots", "other order", "gz"])
def test_every_form_of_the_file_reads_alike(form, tmp_path):
    expected = load_census_income(io.StringIO(UCI))
    rows = [[cell.strip() for cell in line.split(",")] for line in UCI.strip().splitlines()]
    table = pd.DataFrame(rows, columns=NAMES.split(","))
    if form == "gz":
        with gzip.open(tmp_path / "renamed.csv", "wt") as file:
            file.write(UCI)
        source = str(tmp_path / "renamed.csv")
    else:
        table.columns = [
            c if form == "dashes" else c.replace("-", "." if form == "dots" else "_") for c in table.columns
        ]
        table = table[table.columns[::-1]] if form == "other order" else table
        source = io.StringIO(table.to_csv(index=False))
    people = load_census_income(source)
    assert expected.keys() == people.keys()
    pd.testing.assert_frame_equal(people.data, expected.data)
    pd.testing.assert_frame_equal(people.twin, expected.twin)
    for name in ("target", "sensitive_features", "family"):
        np.testing.assert_array_equal(people[name], expected[name])


def test_people_by_hand():
    people = load_census_income(io.StringIO(UCI))
    assert people.target.tolist() == [0, 1, 1] and people.sensitive_features.tolist() == [0, 1, 0]  # distinct people
    expected = [[39, 13, np.log(2175), 0, 40], [37, 14, 0, np.log(1903), 40], [52, 9, 0, 0, 45]]
    np.testing.assert_allclose(people.data[NUMBERS], expected, rtol=1e-15)

    def ones(frame, person):
        row = frame.drop(columns=NUMBERS).iloc[person]
        assert set(row) <= {0.0, 1.0}
        return list(row.index[row == 1])

    assert ones(people.data, 2) == [
        "workclass_?",
        "marital_status_Married-civ-spouse",
        "occupation_?",
        "relationship_Husband",
        "race_Black",
        "sex_Male",
    ]
    changed = [set(ones(people.data, k)) ^ set(ones(people.twin, k)) for k in range(3)]
    sex, spouse = {"sex_Female", "sex_Male"}, {"relationship_Husband", "relationship_Wife"}
    assert changed == [sex, sex | spouse, sex | spouse]
    pd.testing.assert_frame_equal(people.twin[NUMBERS], people.data[NUMBERS])
    assert people.feature_names == list(people.data.columns) == list(people.twin.columns)
    # Families of columns: 2 sexes, 6 relationships, 7 marital statuses.
    assert people.family.sum() == 15 and not people.family[:5].any()


@pytest.mark.parametrize(
    "change, message",
    [
        ((", Male,", ", male,"), r"sex = \['male'\]; known are \['Female', 'Male'\]"),
        (("<=50K", "low"), "income = .*low"),
        (("39,", "young,"), "age = 'young' for person 0"),
        ((" 2174,", " -1,"), "capital_gain = '-1' for person 0"),
        ((", Bachelors", ""), "15 columns between commas"),
        (("39, State-gov", "age, nothing"), "lacks the columns"),
    ],
)
def test_what_is_not_this_table_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        load_census_income(io.StringIO(UCI.replace(*change, 1)))


def test_the_data_set_itself():
    """The file has 32,561 people, of them 7,841 of more than 50K and 10,771 women (UCI's adult.names); 24 repeat another."""
    path = shared_data("adult.csv.gz")
    people, table = load_census_income(path), pd.read_csv(path, keep_default_na=False)
    distinct = ~table.duplicated()
    assert len(table) == 32_561 and len(people.data) == distinct.sum() == 32_537
    assert people.target.sum() == ((table.income == ">50K") & distinct).sum()
    assert people.sensitive_features.sum() == ((table.sex == "Female") & distinct).sum()
    assert (table.income == ">50K").sum() == 7_841 and (table.sex == "Female").sum() == 10_771
    assert people.data.shape == (32_537, 49) and (people.data.sum() > 0).all()  # every category occurs
    one_hot = pd.get_dummies(table[distinct]["occupation"], dtype=float)
    np.testing.assert_array_equal(people.data.filter(like="occupation"), one_hot)
    assert (people.twin["sex_Female"] == 1 - people.sensitive_features).all()
