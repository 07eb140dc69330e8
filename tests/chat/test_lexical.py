"""Vectors of texts: unit length, wording decides, any script."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_lib.messages.lexical import embed


@settings(deadline=None)
@given(st.lists(st.text(), max_size=4))
def test_every_text_has_a_unit_vector(texts):
    vectors = embed(texts)
    assert vectors.shape == (len(texts), 512)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


@pytest.mark.parametrize(
    ("asked", "right", "wrong"),
    [
        (
            "where is the red mug?",
            "The red mug stands on the shelf.",
            "The dog sleeps in the hall.",
        ),
        ("who watered the plants", "They water plants by the window", "They wash the plates"),
        ("红色的杯子在哪里？", "她把红色杯子放在桌子上", "蓝色的书放在架子上"),
        ("赤いカップはどこ", "赤いカップは棚にある", "犬は庭で寝ている"),
    ],
)
def test_shared_wording_is_nearer(asked, right, wrong):
    question, near, far = embed([asked, right, wrong])
    assert question @ near > question @ far + 0.1


def test_case_width_and_punctuation_do_not_matter_and_words_do():
    vectors = embed(["Red mug, ４ spoons!", "red MUG 4 spoons", "red mug five spoons"])
    assert vectors[0] @ vectors[1] == pytest.approx(1)
    assert vectors[0] @ vectors[2] < 0.9


def test_a_text_without_words_is_near_to_nothing_but_its_like():
    empty, dots, text = embed(["", "…!?", "red mug"])
    assert empty @ dots == pytest.approx(1)
    assert abs(float(empty @ text)) < 1e-6


def test_vectors_are_the_same_in_every_process():
    assert np.flatnonzero(embed(["tea"])[0]).tolist() == [139, 210, 344, 347]
