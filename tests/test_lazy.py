"""Names that are imported when first used: cheap to begin with, there when asked for, plain errors else."""

import subprocess
import sys

import pytest

import polyrelu
from polyrelu import claims, workflows
from polyrelu.lazy import lazy_names

SUBPACKAGES = ("bias", "claims", "data", "estimator", "nets", "report", "robust", "sweep", "train")


def python(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_importing_the_package_loads_no_library_and_no_subpackage():
    loaded = "[name for name in sys.modules if name.startswith('polyrelu.')]"
    python(
        "import sys, polyrelu; assert not {'torch', 'numpy', 'scipy', 'sklearn'} & set(sys.modules)\n"
        f"assert {loaded} == ['polyrelu._version', 'polyrelu.lazy'], {loaded}"
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", SUBPACKAGES)
def test_a_subpackage_is_there_after_importing_the_package_alone(name):
    python(f"import polyrelu; assert polyrelu.{name}.__name__ == 'polyrelu.{name}' and polyrelu.{name}.__all__")


@pytest.mark.slow
def test_data_can_be_read_and_certified_after_importing_the_package_alone():
    python(
        "import polyrelu; data = polyrelu.data.read('mixture:dim=8,clusters=2+2,alpha=0.1,n=6')\n"
        "print(polyrelu.robust.bracket(polyrelu.nets.PolyReLUNet(8, 4), data.rows(), data.y).lower)"
    )


def test_everything_offered_is_listed_and_there():
    assert {*polyrelu.__all__, *SUBPACKAGES} <= set(dir(polyrelu))
    for package in (polyrelu, claims, workflows):
        assert all(getattr(package, name) is not None for name in package.__all__)


@pytest.mark.parametrize("package", [polyrelu, claims, workflows])
def test_what_is_not_there_is_an_attribute_error_that_names_the_package(package):
    with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'nonesuch'"):
        package.nonesuch  # noqa: B018


def test_a_name_comes_from_its_module_and_a_module_is_itself():
    get = lazy_names("polyrelu", {"errors": ("InputError",), "progress": ()})
    assert get("InputError") is polyrelu.InputError and get("progress").__name__ == "polyrelu.progress"
