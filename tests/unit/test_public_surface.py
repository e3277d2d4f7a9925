"""The public names: what is promised is there, what is there is promised, and in order."""

import importlib
import pkgutil
from types import ModuleType

import pytest

import cartoolkit

MODULES = ["cartoolkit", *(m.name for m in pkgutil.walk_packages(cartoolkit.__path__, "cartoolkit."))]
PACKAGES = [m.name for m in pkgutil.walk_packages(cartoolkit.__path__, "cartoolkit.") if m.ispkg]
PROMISED = [
    "CartoolkitError", "Engine", "GenerateParams", "GenerateRequest", "Inspector", "Message", "Result",
    "Session", "Step", "Trace", "errors", "load", "models",
]  # fmt: skip


def in_order(names):
    """Constants, classes, functions; each by the alphabet."""
    return sorted(names, key=lambda name: (not name.isupper(), not name[0].isupper(), name))


def offered_by(package) -> set[str]:
    """Names without an underscore in a package, its modules and `annotations` aside."""
    if hasattr(package, "_HOME"):  # names that are imported when they are first used
        return set(package._HOME)
    return {
        name
        for name, value in vars(package).items()
        if not name.startswith("_") and not isinstance(value, ModuleType) and name != "annotations"
    }


@pytest.mark.parametrize("name", MODULES)
def test_all_is_there_and_in_order(name):
    module = importlib.import_module(name)
    assert module.__all__ == in_order(module.__all__)
    assert len(set(module.__all__)) == len(module.__all__)
    assert [each for each in module.__all__ if not hasattr(module, each)] == []


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_offers_exactly_what_its_all_says(name):
    package = importlib.import_module(name)
    assert offered_by(package) == set(package.__all__)


def test_the_package_offers_what_the_readers_were_promised():
    assert set(PROMISED) <= set(cartoolkit.__all__)


def test_dir_lists_the_public_names_before_they_were_used():
    assert dir(cartoolkit) == sorted([*cartoolkit.__all__, "__version__"])


@pytest.mark.parametrize("name", cartoolkit.__all__)
def test_a_lazy_name_is_the_real_thing(name):
    value = getattr(cartoolkit, name)
    home = cartoolkit._HOME.get(name)
    if home is None:
        assert value is importlib.import_module(f"cartoolkit.{name}")
    else:
        module = importlib.import_module(f"cartoolkit.{home}")
        assert value is getattr(module, name)
        assert name in module.__all__


@pytest.mark.parametrize("name", cartoolkit.routing.__all__)
def test_a_lazy_name_of_routing_is_the_real_thing(name):
    module = importlib.import_module(f"cartoolkit.{cartoolkit.routing._HOME[name]}")
    assert getattr(cartoolkit.routing, name) is getattr(module, name)
    assert name in module.__all__


def test_a_name_that_is_not_there_is_an_attribute_error_that_names_it():
    with pytest.raises(AttributeError, match="module 'cartoolkit' has no attribute 'lode'"):
        cartoolkit.lode  # noqa: B018


def test_a_package_s_folders_can_be_reached_without_importing_them():
    assert cartoolkit.trace.Trace is cartoolkit.Trace


def test_the_version_is_the_installed_one():
    from importlib.metadata import version

    assert cartoolkit.__version__ == version("cartoolkit")
