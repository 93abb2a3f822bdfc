"""LETOR files as they are in practice, and the paper's preparation of Microsoft Learning to Rank."""

import gzip
import io
import itertools
import math

import numpy as np
import pytest
import scipy.sparse
import scipy.stats
from _data import shared_data
from sklearn.datasets import load_svmlight_file
from sklearn.utils import Bunch

from skfairrank._queries import Queries
from skfairrank.datasets import load_letor, make_mslr_ranking
from skfairrank.datasets._letor import FEATURE_NAMES

PLAIN = """\
2 qid:10 1:0.5 2:-3 4:1e3
0 qid:10 2:7
1 qid:3 1:1 2:2 3:3 4:4
"""
DATA = [[0.5, -3, 0, 1000], [0, 7, 0, 0], [1, 2, 3, 4]]


def letor(text, **parameters):
    return load_letor(io.BytesIO(text.encode()), **parameters)


# ---------------------------------------------------------------------------------------------------------- oddities


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        PLAIN.replace("\n", "\r\n"),
        PLAIN.replace(" ", "\t"),
        "\n\n" + PLAIN.replace("\n", "\n\r\n") + "  \n",
        PLAIN.replace("\n", "# docid = 1:2 qid:9\n"),
        "\ufeff" + PLAIN,
    ],
)
def test_white_space_comments_and_line_ends_do_not_matter(text):
    documents = letor(text)
    np.testing.assert_array_equal(documents.data, DATA)
    assert documents.target.tolist() == [2, 0, 1] and documents.target.dtype == np.int64
    assert documents.qid.tolist() == [10, 10, 3] and documents.qid.dtype == np.int64
    assert documents.feature_names == ["1", "2", "3", "4"]


def test_features_count_from_1_also_where_feature_1_never_occurs():
    """scikit-learn's default guesses: a file without feature 1 would keep its columns, one with it would lose one."""
    documents = letor("1 qid:1 2:5\n0 qid:1 3:6\n")
    np.testing.assert_array_equal(documents.data, [[0, 5, 0], [0, 0, 6]])
    zero_based = letor("1 qid:1 2:5\n0 qid:1 3:6\n", zero_based=True)
    np.testing.assert_array_equal(zero_based.data, [[0, 0, 5, 0], [0, 0, 0, 6]])
    assert zero_based.feature_names == ["0", "1", "2", "3"]
    assert letor("1 qid:1 0:5\n", zero_based=True).data.tolist() == [[5]]
    with pytest.raises(ValueError, match=r"line 2.*Invalid index 0"):
        letor("1 qid:1 2:5\n0 qid:1 0:6\n")


def test_trailing_features_that_no_document_has():
    assert letor(PLAIN, n_features=6).data.shape == (3, 6)
    np.testing.assert_array_equal(letor(PLAIN, n_features=6).data[:, 4:], 0)
    with pytest.raises(ValueError, match="n_features was set to 3, but input file contains 4"):
        letor(PLAIN, n_features=3)


def test_unsorted_and_returning_qid_keep_the_order_of_the_file():
    documents = letor("0 qid:5 1:1\n1 qid:2 1:2\n2 qid:5 1:3\n0 qid:-1 1:4\n")
    assert documents.qid.tolist() == [5, 2, 5, -1]
    assert documents.data.ravel().tolist() == [1, 2, 3, 4]
    assert Queries.from_qid(documents.qid, 4).sizes.tolist() == [1, 1, 2]


def test_qid_that_are_no_integers_stay_strings():
    assert letor("1 qid:WT04-170 1:1\n0 qid:7 1:1\n").qid.tolist() == ["WT04-170", "7"]
    assert letor(f"1 qid:{10**30} 1:1\n").qid.tolist() == [str(10**30)]
    assert letor("1 qid:007 1:1\n0 qid:7 1:1\n").qid.tolist() == ["007", "7"]
    assert letor(f"1 qid:{2**62} 1:1\n").qid.tolist() == [2**62]


def test_real_valued_relevance_stays_real_and_comments_stay_with_their_rows():
    documents = letor("0.5 qid:1 1:1 # a\n2 qid:1 1:1\n")
    assert documents.target.tolist() == [0.5, 2] and documents.comments.tolist() == ["a", ""]


def test_dtype_and_sparse_output():
    sparse = letor(PLAIN, dense=False, dtype=np.float32)
    assert scipy.sparse.issparse(sparse.data) and sparse.data.format == "csr" and sparse.data.dtype == np.float32
    np.testing.assert_array_equal(sparse.data.toarray(), np.float32(DATA))
    dense = letor(PLAIN, dtype=np.float32)
    assert isinstance(dense.data, np.ndarray) and dense.data.dtype == np.float32


# ------------------------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "no row in it"),
        ("1 1:2 2:3\n0 1:1\n", "line 1: no query id after the relevance"),
        ("1 qid:1 1:2\nx qid:1 1:2\n", "line 2: not of the form 'relevance qid:id index:value"),
        ("1 qid:1 2:1 1:1\n", "line 1: not of the form.*sorted and unique"),
    ],
)
def test_messages_name_file_and_line(tmp_path, text, message):
    path = tmp_path / "train.txt"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as error:
        load_letor(path)
    assert str(path) in str(error.value)
    with pytest.raises(ValueError, match=message):
        letor(text)


# -------------------------------------------------------------------------------------------- against other readers


@pytest.mark.parametrize(
    "name, shape, n_queries",
    [
        ("mslr_sample_train.txt.gz", (4955, 136), 42),
        ("mslr_sample_vali.txt.gz", (2402, 136), 23),
        ("mslr_sample_test.txt.gz", (4974, 136), 42),
        ("lightgbm_rank_train.letor.txt.gz", (3005, 300), 201),
        ("lightgbm_rank_test.letor.txt.gz", (768, 300), 50),
    ],
)
def test_real_files_are_read_as_scikit_learn_reads_them(name, shape, n_queries):
    path = shared_data(name)
    documents = load_letor(path, n_features=shape[1])
    X, y, qid = load_svmlight_file(str(path), query_id=True, zero_based=False, n_features=shape[1])
    assert documents.data.shape == shape
    np.testing.assert_array_equal(documents.data, X.toarray())
    np.testing.assert_array_equal(documents.target, y)
    np.testing.assert_array_equal(documents.qid, qid)
    assert len(np.unique(documents.qid)) == n_queries


# ------------------------------------------------------------------------------------------------- make_mslr_ranking


def mslr_part(sizes, relevances, seed=0):
    """Documents of 136 random features; `relevances` maps query number -> {position: relevance}, else 0."""
    generator = np.random.default_rng(seed)
    n = sum(sizes)
    data = generator.lognormal(3, 2, size=(n, 136))
    data[:, 95:100] = generator.integers(0, 2, size=(n, 5))
    data[:, 132] = generator.integers(1, 30, n)
    qid = np.repeat(np.arange(len(sizes)) * 3 + 1, sizes)
    target = np.zeros(n, dtype=int)
    for query, labels in relevances.items():
        for position, relevance in labels.items():
            target[sum(sizes[:query]) + position] = relevance
    return Bunch(data=data, target=target, qid=qid)


@pytest.fixture
def parts():
    # Queries: 25 documents with two of relevance 4; 30 without any; 19 with one; 20 with one at the end; 40, all zero.
    relevances = {0: {3: 4, 5: 1, 24: 4}, 1: {0: 3}, 2: {0: 4}, 3: {19: 4}, 4: {}}
    return [mslr_part([25, 30, 19, 20, 40], relevances, seed) for seed in range(3)]


def test_mslr_keeps_the_queries_that_the_paper_keeps_and_counts_the_others(parts):
    task = make_mslr_ranking(*parts, random_state=0)
    for name, given in zip(("train", "validation", "test"), parts, strict=True):
        part = task[name]
        assert part.n_queries == {
            "given": 5,
            "too few documents": 1,
            "no document of the required relevance": 2,
            "kept": 2,
        }
        assert part.qid.tolist() == [1] * 20 + [10] * 20
        assert part.data.shape == (40, 135)
        np.testing.assert_array_equal(part.target, given.target[part.rows])
        np.testing.assert_array_equal(part.qid, given.qid[part.rows])
        assert (np.diff(part.rows) > 0).all(), "without replacement, in the given order"
        assert part.target[:20].max() == part.target[20:].max() == 4


def test_mslr_features_are_dropped_left_and_standardised_as_in_the_paper(parts):
    task = make_mslr_ranking(*parts, random_state=0)
    kept = [column for column in range(136) if column != 131]
    raw = parts[0].data
    mean, deviation = raw.mean(axis=0), raw.std(axis=0)
    mean[95:100], deviation[95:100] = 0, 1
    for name, given in zip(("train", "validation", "test"), parts, strict=True):
        expected = ((given.data[task[name].rows] - mean) / deviation)[:, kept]
        np.testing.assert_allclose(task[name].data, expected, rtol=1e-9, atol=1e-9)
    whole = make_mslr_ranking(*parts, n_documents=None, min_documents=1, required_relevance=0).train.data
    np.testing.assert_allclose(np.delete(whole, range(95, 100), axis=1).std(axis=0), 1)
    assert np.isin(whole[:, 95:100], (0, 1)).all()
    assert task.feature_names == [FEATURE_NAMES[column] for column in kept]
    assert task.feature_names[task.sensitive_column] == "QualityScore2" and task.sensitive_column == 131


def test_mslr_groups_are_cut_at_the_training_percentile(parts):
    task = make_mslr_ranking(*parts, random_state=0)
    quality = np.sort(parts[0].data[:, 132])
    assert task.quality_threshold == quality[math.floor(0.4 * (len(quality) - 1))]
    for name, given in zip(("train", "validation", "test"), parts, strict=True):
        high = given.data[task[name].rows, 132] >= task.quality_threshold
        np.testing.assert_array_equal(task[name].sensitive_features, high)
        assert task[name].sensitive_features.dtype == bool
    assert make_mslr_ranking(*parts, quality_percentile=0, random_state=0).train.sensitive_features.all()


def test_mslr_learns_from_the_training_part_alone(parts):
    before = make_mslr_ranking(*parts, random_state=0)
    other = [parts[0], mslr_part([20], {0: {0: 4}}, 8), mslr_part([21, 22], {0: {0: 4}, 1: {1: 4}}, 9)]
    for part in other[1:]:
        part.data *= 1000
    after = make_mslr_ranking(*other, random_state=0)
    np.testing.assert_array_equal(before.train.data, after.train.data)
    assert before.quality_threshold == after.quality_threshold
    # A document has the same features in whichever part it is.
    same = make_mslr_ranking(parts[0], parts[0], parts[0], n_documents=None)
    np.testing.assert_array_equal(same.train.data, same.test.data)


def test_mslr_sampling_is_uniform_over_the_subsets_with_a_relevant_document():
    """Against all subsets: redrawing until a relevant document is in leaves each of them equally likely."""
    n, k, relevant = 6, 3, {1, 4}
    subsets = [s for s in itertools.combinations(range(n), k) if relevant & set(s)]
    part = mslr_part([n] * 4000, {query: {1: 4, 4: 4} for query in range(4000)})
    task = make_mslr_ranking(part, part, part, n_documents=k, min_documents=k, random_state=0)
    drawn = [tuple(rows) for rows in (task.train.rows.reshape(-1, k) % n).tolist()]
    counts = [drawn.count(subset) for subset in subsets]
    assert sum(counts) == 4000
    assert scipy.stats.chisquare(counts).pvalue > 1e-3


def test_mslr_names_what_is_wrong(parts):
    narrow = Bunch(data=parts[1].data[:, :130], target=parts[1].target, qid=parts[1].qid)
    with pytest.raises(ValueError, match=r"validation.data has 130 features.*load_letor\(path, n_features=136\)"):
        make_mslr_ranking(parts[0], narrow, parts[2])
    nothing = mslr_part([19, 25, 30], {0: {0: 4}})
    with pytest.raises(
        ValueError, match=r"test: none of 3 queries is kept: 1 have fewer than min_documents=20.* 2 others"
    ):
        make_mslr_ranking(parts[0], parts[1], nothing)


def test_mslr_feature_names_are_the_published_ones():
    with gzip.open(shared_data("mslr_feature_names.txt.gz"), "rt") as lines:
        # The list has one misprint.
        published = [" ".join(line.split()[1:]).replace("vwhole", "whole") for line in lines]
    assert published == FEATURE_NAMES


@pytest.mark.parametrize("required_relevance, n_kept", [(4, 34), (3, 69)])
def test_mslr_sample_passes_the_filter_as_recorded(required_relevance, n_kept):
    parts = [load_letor(shared_data(f"mslr_sample_{name}.txt.gz")) for name in ("train", "vali", "test")]
    task = make_mslr_ranking(*parts, required_relevance=required_relevance, random_state=0)
    kept = [task[name] for name in ("train", "validation", "test")]
    assert sum(part.n_queries["given"] for part in kept) == 107
    assert sum(part.n_queries["kept"] for part in kept) == n_kept
    for part in kept:
        queries = Queries.from_qid(part.qid, len(part.qid))
        assert (queries.sizes == 20).all() and np.isfinite(part.data).all()
        assert (np.maximum.reduceat(queries.group(part.target), queries.offsets[:-1]) >= required_relevance).all()
        assert 0.2 < part.sensitive_features.mean() < 0.9
        counts = part.n_queries
        assert counts["given"] == counts["kept"] + counts["too few documents"] + sum(
            n for reason, n in counts.items() if reason.startswith("no document")
        )
    # At least 60 % of all training documents are at or above their 40th percentile, more where values are tied.
    whole = make_mslr_ranking(*parts, n_documents=None, min_documents=1, required_relevance=0)
    assert 0.6 <= whole.train.sensitive_features.mean() < 0.7
    assert whole.quality_threshold == task.quality_threshold
