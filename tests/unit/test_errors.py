"""The error tree: as drawn, documented, and shown to people."""

import copy
import pickle
import re
import traceback

import pytest

from cartoolkit import errors
from cartoolkit.errors import CartoolkitError

LEVEL = 4  # characters of the drawing for one level: "├── "


def drawn() -> dict[str, tuple[str, ...]]:
    """Bases of each class in the module docstring's drawing, by name."""
    above: list[str] = []
    tree = {}
    for line in errors.__doc__.partition("::")[2].splitlines():
        if found := re.fullmatch(r"    ([│├└─ ]*)([A-Z]\w+)(?: \((\w+)\))?(?: {2,}\S.*| \S.*)?", line):
            branch, name, other = found.groups()
            above[len(branch) // LEVEL :] = [name]
            tree[name] = tuple(filter(None, [above[-2] if branch else "Exception", other]))
    return tree


def classes() -> dict[str, type[CartoolkitError]]:
    """Every error class, found by walking the subclasses."""
    found, waiting = {}, [CartoolkitError]
    while waiting:
        cls = waiting.pop()
        found[cls.__name__] = cls
        waiting += cls.__subclasses__()
    return found


def test_the_drawing_is_the_tree():
    real = {name: tuple(base.__name__ for base in cls.__bases__) for name, cls in classes().items()}
    assert drawn() == real


def test_every_error_lives_in_the_one_module_and_is_public():
    assert {cls.__module__ for cls in classes().values()} == {"cartoolkit.errors"}
    assert set(errors.__all__) == set(classes())


@pytest.mark.parametrize("name", sorted(classes()))
def test_every_error_says_in_a_sentence_when_it_happens(name):
    doc = classes()[name].__doc__
    assert doc
    assert doc.partition("\n")[0].endswith(".")


@pytest.mark.parametrize("name", sorted(classes()))
def test_every_error_shows_its_hint_under_the_traceback(name):
    error = classes()[name]("the sky fell", hint="Look up.")
    assert (str(error), error.hint) == ("the sky fell", "Look up.")
    lines = "".join(traceback.format_exception(error)).splitlines()
    assert lines == [f"cartoolkit.errors.{name}: the sky fell", "Look up."]


@pytest.mark.parametrize("name", sorted(classes()))
def test_without_a_hint_nothing_is_added(name):
    error = classes()[name]("the sky fell")
    assert error.hint is None
    assert traceback.format_exception(error) == [f"cartoolkit.errors.{name}: the sky fell\n"]


@pytest.mark.parametrize("name", sorted(classes()))
@pytest.mark.parametrize(
    "again", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))], ids=["copy", "pickle"]
)
def test_an_error_survives_on_its_way_between_processes(name, again):
    error = again(classes()[name]("the sky fell", hint="Look up."))
    assert type(error) is classes()[name]
    assert (str(error), error.hint, error.__notes__) == ("the sky fell", "Look up.", ["Look up."])


def test_an_engine_s_error_keeps_what_there_was():
    trace = object()
    assert errors.ForwardFailed("no", trace=trace).trace is trace
    assert errors.ForwardFailed("no").trace is None


def test_errors_are_caught_as_what_python_calls_them():
    assert issubclass(errors.InvalidRequest, ValueError)
    assert issubclass(errors.MissingDependency, ImportError)
