"""The folder is the registry: a file `NAME.py` here is the method NAME on the command line."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from dataclasses import fields
from typing import Any

from bench_lib.errors import BenchError, nearest
from bench_lib.memories.method import Method


def available() -> tuple[str, ...]:
    """Names of all methods, in alphabetical order; imports none of them."""
    return tuple(sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name != "__main__"))


def find(name: str) -> type[Method]:
    """The class of a method; raises BenchError that names the nearest one."""
    if name not in available():
        raise BenchError(f"unknown method {name!r}; {nearest(name, available())}")
    module = importlib.import_module(f"{__name__}.{name}")
    classes = [
        c
        for _, c in inspect.getmembers(module, inspect.isclass)
        if issubclass(c, Method) and c.__module__ == module.__name__ and not inspect.isabstract(c)
    ]
    if len(classes) != 1:
        raise BenchError(f"{module.__file__} must define exactly one method, not {len(classes)}")
    classes[0].name = name
    return classes[0]


def parameters(cls: type[Method]) -> tuple[str, ...]:
    """Names of a method's hyper-parameters."""
    return tuple(f.name for f in fields(cls) if f.init)


def load(name: str, **args: Any) -> Method:
    """Build a method from its hyper-parameters; an unknown one is refused with the nearest name."""
    cls = find(name)
    for key in args:
        if key not in parameters(cls):
            raise BenchError(f"{name} has no parameter {key!r}; {nearest(key, parameters(cls))}")
    return cls(**args)
