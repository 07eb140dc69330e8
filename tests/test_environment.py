"""environment.yml, the locks and pyproject.toml tell one story; the installer chooses rightly."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from bench_lib import install
from bench_lib.opening import startup

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def locked(name: str) -> dict[str, Version]:
    lines = (ROOT / name).read_text().splitlines()
    pairs = [line.split("==") for line in lines if "==" in line and not line.startswith("#")]
    return {key.lower().replace("_", "-"): Version(value) for key, value in pairs}


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-cuda12.lock"])
def test_a_lock_satisfies_the_ranges(name: str) -> None:
    pins = locked(name)
    for line in [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"]]:
        wanted = Requirement(line)
        if wanted.marker and not wanted.marker.evaluate({"platform_machine": "x86_64"}):
            continue
        assert wanted.name in pins, f"{wanted.name} is not locked"
        assert pins[wanted.name] in wanted.specifier, line


def test_the_locks_differ_in_torch_alone() -> None:
    new, old = locked("requirements.lock"), locked("requirements-cuda12.lock")
    assert {key for key in new | old if new.get(key) != old.get(key)} == {"torch"}
    assert old["torch"] < Version("2.11"), "later releases are built for CUDA 13"


def test_the_conda_file_agrees_with_the_project() -> None:
    listed = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    (python,) = [d for d in listed if isinstance(d, str) and d.startswith("python=")]
    assert python.split("=")[1] in SpecifierSet(PROJECT["requires-python"])
    (pip,) = [d["pip"] for d in listed if isinstance(d, dict)]
    assert "-r requirements.lock" in pip
    (own,) = [line for line in pip if line.startswith("-e .")]
    extras = re.search(r"\[(.*)\]", own)
    assert extras
    assert set(extras[1].split(",")) <= set(PROJECT["optional-dependencies"])


@pytest.mark.parametrize(
    ("driver", "lock"),
    [(None, "requirements.lock"), (580, "requirements.lock"), (550, "requirements-cuda12.lock")],
)
def test_the_driver_chooses_the_lock(driver: int | None, lock: str) -> None:
    assert install.lock_file(driver).name == lock


def test_a_build_that_does_not_fit_the_driver_is_named_with_its_remedy() -> None:
    assert "requirements-cuda12.lock" in startup.explain(550, "2.13.0", "13.0")
    assert "remove .venv" in startup.explain(580, "2.13.0+cpu", None)
    assert "CUDA_VISIBLE_DEVICES" in startup.explain(580, "2.13.0", "13.0")


def test_the_top_level_holds_what_was_agreed() -> None:
    done = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    tops = {line.split("/")[0] for line in done.stdout.splitlines()}
    agreed = {
        "notebooks", "bench_lib", "params", "outputs", "tests", "environment.yml", "README.md",
        "pyproject.toml", "Makefile", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md",
        "requirements.lock", "requirements-cuda12.lock",
    }  # fmt: skip
    assert {top for top in tops if not top.startswith(".")} <= agreed


def test_importing_the_package_is_light() -> None:
    code = "import sys, bench_lib; assert not {'torch', 'numpy', 'pandas'} & set(sys.modules)\n"
    code += "import bench_lib.backbones.qwen3_vl; assert 'torch._dynamo' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
