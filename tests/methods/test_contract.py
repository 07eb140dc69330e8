"""One contract for all methods: every check on every method that is found."""

from __future__ import annotations

import pytest

from bench_lib import methods
from bench_lib.evaluate import checks
from bench_lib.evaluate.checks.memory import in_new_process
from bench_lib.evaluate.checks.trial import Trial

OWN_PROCESS = "a new process answers the same"
NAMES = methods.available()
SHARED = [c for c in checks.CHECKS if c.name != OWN_PROCESS]


def tried(name: str, check: checks.Check, model: str = "") -> None:
    make = Trial.scaled(name, model)
    if not check.applies(make()):
        pytest.skip(f"for {check.only}")
    check.run(make)


@pytest.mark.parametrize("check", SHARED, ids=lambda c: c.name.replace(" ", "-"))
@pytest.mark.parametrize("name", NAMES)
def test_a_method_keeps_the_contract(name: str, check: checks.Check) -> None:
    tried(name, check)


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What is wrong with each method's memory in one new process; empty where nothing is."""
    home = tmp_path_factory.mktemp("memories")
    kept = [(Trial.scaled(name), home / name) for name in NAMES]
    for _, folder in kept:
        folder.mkdir()
    return dict(zip(NAMES, in_new_process(kept), strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_a_new_process_answers_the_same(elsewhere: dict[str, str], name: str) -> None:
    assert elsewhere[name] == ""


@pytest.mark.slow
@pytest.mark.parametrize("check", checks.CHECKS, ids=lambda c: c.name.replace(" ", "-"))
@pytest.mark.parametrize("name", NAMES)
def test_a_method_keeps_the_contract_on_another_model(name: str, check: checks.Check) -> None:
    """Message methods on a local model, the others on the other family of backbones."""
    kind = methods.find(name).model
    if kind == "none":
        pytest.skip("no model serves it")
    if name in ("text_summary", "streammind") and check.name == "the last session is remembered":
        pytest.skip("an untrained model writes no JSON, so its summaries are empty")
    tried(name, check, "tiny-untrained" if kind == "chat" else "tiny-qwen3")
