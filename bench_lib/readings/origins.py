"""Which process gave each answer that counts: by what code, and on which device its times are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from bench_lib.readings.material import Material
from bench_lib.runs.provenance import code_of
from bench_lib.schema import RETRIED

APART = "¶"
UNKNOWN = "a device that was not recorded"


def codes(material: Material) -> Counter[str]:
    """Answers by the code that gave them, as revision and digest."""
    answered = {r.key for r in material.responses if r.status not in RETRIED}
    return Counter(code_of(p) for key, p in material.run.given_by().items() if key in answered)


def devices(material: Material) -> Counter[str]:
    """Answers by the device that their times were taken on."""
    return Counter(one.get("device") or UNKNOWN for one in material.run.given_by().values())


def apart(materials: Mapping[str, Material]) -> str:
    """A sentence on the devices of runs that stand beside each other; empty where it is one."""
    found: dict[str, list[str]] = {}
    for label, material in materials.items():
        for device in devices(material):
            found.setdefault(device, []).append(label)
    if len(found) < 2:
        return ""
    told = "; ".join(f"{device}: {', '.join(labels)}" for device, labels in found.items())
    return f"{APART} Times were taken on different devices and compare nothing: {told}."
