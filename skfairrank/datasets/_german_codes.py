"""The categories of German Credit, and what the codes of UCI's file and of OpenML's table mean in their terms."""

from __future__ import annotations

__all__ = [
    "CATEGORIES",
    "COLUMNS",
    "NUMERIC",
    "OPENML_CODES",
    "OPENML_COLUMNS",
    "UCI_CODES",
    "UCI_COLUMNS",
]

# The order of the categories is the column order of the paper's one-hot encoding ("NA" sorts before small letters).
CATEGORIES: dict[str, list] = {
    "Sex": ["female", "male"],
    "Job": [0, 1, 2, 3],
    "Housing": ["free", "own", "rent"],
    "Saving accounts": ["none", "little", "moderate", "quite rich", "rich"],
    "Checking account": ["none", "little", "moderate", "rich"],
    "Purpose": [
        "business",
        "car",
        "domestic appliances",
        "education",
        "furniture/equipment",
        "radio/TV",
        "repairs",
        "vacation/others",
    ],
}
NUMERIC = ["Age", "Credit amount", "Duration"]
COLUMNS = [
    "Age",
    "Sex",
    "Job",
    "Housing",
    "Saving accounts",
    "Checking account",
    "Credit amount",
    "Duration",
    "Purpose",
]

# Position of the column in german.data, counted from 0.
UCI_COLUMNS = {
    12: "Age",
    8: "Sex",
    16: "Job",
    14: "Housing",
    5: "Saving accounts",
    0: "Checking account",
    4: "Credit amount",
    1: "Duration",
    3: "Purpose",
    20: "Risk",
}
UCI_CODES: dict[str, dict] = {
    "Sex": {"A91": "male", "A92": "female", "A93": "male", "A94": "male", "A95": "female"},
    "Job": {"A171": 0, "A172": 1, "A173": 2, "A174": 3},
    "Housing": {"A151": "rent", "A152": "own", "A153": "free"},
    "Saving accounts": {"A61": "little", "A62": "moderate", "A63": "quite rich", "A64": "rich", "A65": "none"},
    "Checking account": {"A11": "little", "A12": "moderate", "A13": "rich", "A14": "none"},
    "Purpose": {
        "A40": "car",
        "A41": "car",
        "A42": "furniture/equipment",
        "A43": "radio/TV",
        "A44": "domestic appliances",
        "A45": "repairs",
        "A46": "education",
        "A47": "vacation/others",
        "A48": "education",
        "A49": "business",
        "A410": "vacation/others",
    },
    "Risk": {"1": "good", "2": "bad"},
}

OPENML_COLUMNS = {
    "age": "Age",
    "personal_status": "Sex",
    "job": "Job",
    "housing": "Housing",
    "savings_status": "Saving accounts",
    "checking_status": "Checking account",
    "credit_amount": "Credit amount",
    "duration": "Duration",
    "purpose": "Purpose",
    "class": "Risk",
}
OPENML_CODES: dict[str, dict] = {
    "Sex": {
        "male div/sep": "male",
        "female div/dep/mar": "female",
        "male single": "male",
        "male mar/wid": "male",
        "female single": "female",
    },
    "Job": {
        "unemp/unskilled non res": 0,
        "unskilled resident": 1,
        "skilled": 2,
        "high qualif/self emp/mgmt": 3,
    },
    "Housing": {"rent": "rent", "own": "own", "for free": "free"},
    "Saving accounts": {
        "<100": "little",
        "100<=X<500": "moderate",
        "500<=X<1000": "quite rich",
        ">=1000": "rich",
        "no known savings": "none",
    },
    "Checking account": {"<0": "little", "0<=X<200": "moderate", ">=200": "rich", "no checking": "none"},
    "Purpose": {
        "new car": "car",
        "used car": "car",
        "furniture/equipment": "furniture/equipment",
        "radio/tv": "radio/TV",
        "domestic appliance": "domestic appliances",
        "repairs": "repairs",
        "education": "education",
        "vacation": "vacation/others",
        "retraining": "education",
        "business": "business",
        "other": "vacation/others",
    },
    "Risk": {"good": "good", "bad": "bad"},
}
