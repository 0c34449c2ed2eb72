"""Threads: as many as the process may use; bounded spinning where torch is loaded; nobody's own choice undone."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from polyrelu import threads
from polyrelu.threads import cores, prepare, quota

ROOT = Path(__file__).parents[1]
NAMES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
# Says what is set the moment torch is loaded, and ends there.
WATCH = """
import os, runpy, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            print("torch", os.environ.get("GOMP_SPINCOUNT"), flush=True)
            os._exit(0)
sys.meta_path.insert(0, Finder())
"""


@pytest.fixture
def bare(monkeypatch):
    """An environment in which nobody has chosen anything."""
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


def run(*words, **more):
    given = {name: value for name, value in os.environ.items() if name not in NAMES}
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, env=given | more, cwd=ROOT)


def test_what_is_set(bare):
    wanted = {"OMP_NUM_THREADS": str(cores()), "GOMP_SPINCOUNT": threads.SPINS, "KMP_BLOCKTIME": threads.MILLISECONDS}
    assert prepare() == wanted
    assert {name: os.environ[name] for name in wanted} == wanted and prepare() == {}


@pytest.mark.parametrize("name", ["OMP_NUM_THREADS", "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "MKL_NUM_THREADS"])
def test_what_is_there_is_left_alone(bare, monkeypatch, name):
    monkeypatch.setenv(name, "7")
    assert name not in prepare() and os.environ[name] == "7"


def test_a_waiting_policy_is_left_alone(bare, monkeypatch):
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    assert set(prepare()) == {"OMP_NUM_THREADS"}


@pytest.mark.slow
def test_importing_the_library_changes_nothing():
    code = "import os; before = dict(os.environ); import polyrelu; polyrelu.flow; assert dict(os.environ) == before"
    assert run("-c", code).returncode == 0


FLOW = [
    "-m",
    "polyrelu",
    "flow",
    "--dim",
    "6",
    "--samples",
    "30",
    "--width",
    "8",
    "--clusters",
    "2+2",
    "--quiet",
]


@pytest.mark.slow
@pytest.mark.parametrize("given", [{}, {"OMP_NUM_THREADS": "1", "GOMP_SPINCOUNT": "123"}])
def test_every_openmp_of_the_command_line_has_read_it(tmp_path, given):
    ran = run(*FLOW, "--out", str(tmp_path), OMP_DISPLAY_ENV="verbose", **given)
    assert ran.returncode == 0
    if "GOMP_SPINCOUNT" not in ran.stderr:
        pytest.skip("this torch brings another OpenMP along")
    for name, ours in (("OMP_NUM_THREADS", str(cores())), ("GOMP_SPINCOUNT", threads.SPINS)):
        assert set(re.findall(rf"{name} = '(\d+)'", ran.stderr)) == {given.get(name, ours)}


SCRIPTS = sorted(path.name for path in (ROOT / "benchmarks").glob("[a-z]*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_benchmarks_set_it_before_torch_is_loaded(name):
    path = ROOT / "benchmarks" / name
    more = f"sys.path.insert(0, {str(path.parent)!r}); runpy.run_path({str(path)!r})"
    ran = run("-c", WATCH + more)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout in (f"torch {threads.SPINS}\n", "")  # "": it leaves torch to processes of its own


def test_tools_set_it_before_torch_is_loaded():
    assert run("-c", WATCH + "import tools; import torch").stdout == f"torch {threads.SPINS}\n"


def test_these_tests_have_it():
    import torch

    assert os.environ["GOMP_SPINCOUNT"] and os.environ["OMP_NUM_THREADS"] == "1" and torch.get_num_threads() == 1


# ------------------------------------------------------------------------------------------------- control groups

V1 = """31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw
32 31 0:29 {top} /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
"""
V2 = "30 23 0:26 {top} /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"


def machine(root, mounts, group, files):
    """A machine with these mounts, this process in ``group``, and these files below /sys/fs/cgroup."""
    for name, text in {"proc/self/mountinfo": mounts, "proc/self/cgroup": group}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for name, text in files.items():
        path = root / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize(
    ("top", "group", "files", "share"),
    [
        ("/", "0::/", {"cpu.max": "150000 100000\n"}, 1.5),  # a container with groups of its own
        ("/", "0::/a/b\n", {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "300000 100000\n"}, 3.0),  # of one further up
        ("/", "0::/a/b\n", {"a/b/cpu.max": "50000 100000\n", "a/cpu.max": "300000 100000\n"}, 0.5),  # the least counts
        ("/", "0::/a\n", {"a/cpu.max": "max 100000\n"}, None),
        ("/", "0::/a\n", {"b/cpu.max": "50000 100000\n"}, None),  # of somebody else
        ("/a", "0::/a/b\n", {"b/cpu.max": "200000 100000\n", "cpu.max": "max 100000\n"}, 2.0),  # only a part is mounted
        ("/", "0::/../other\n", {"cpu.max": "200000 100000\n"}, 2.0),
        ("/", "0::/\n", {"cpu.max": "nonsense"}, None),
        ("/", "0::/\n", {"cpu.max": "100 0"}, None),
    ],
)
def test_quota_of_version_2(tmp_path, top, group, files, share):
    assert quota(machine(tmp_path, V2.format(top=top), group, files)) == share


@pytest.mark.parametrize(
    ("top", "quotas", "share"),
    [
        ("/", {"docker/x/cpu.cfs_quota_us": "250000", "docker/x/cpu.cfs_period_us": "100000"}, 2.5),
        ("/docker/x", {"cpu.cfs_quota_us": "250000", "cpu.cfs_period_us": "50000"}, 5.0),  # as a container sees it
        ("/", {"docker/x/cpu.cfs_quota_us": "-1", "docker/x/cpu.cfs_period_us": "100000"}, None),
        ("/", {}, None),
    ],
)
def test_quota_of_version_1(tmp_path, top, quotas, share):
    group = "9:name=systemd:/\n5:cpuset:/other\n4:cpu,cpuacct:/docker/x\n0::/\n"
    files = {f"cpu,cpuacct/{name}": text + "\n" for name, text in quotas.items()}
    assert quota(machine(tmp_path, V1.format(top=top), group, files)) == share


@pytest.mark.parametrize(
    "mount",
    [b"40 23 0:50 / /mnt rw - tmpfs  rw\n", b"41 2 0:51 / /m\xe9 rw - ext4 x rw\n", b"30 23\n", b"\n", b"1 2 3 / /x\n"],
    ids=["a source without a name", "a name that is not UTF-8", "short", "empty", "no end"],
)  # fmt: skip
def test_other_mounts_and_groups_do_not_matter(tmp_path, mount):
    root = machine(tmp_path, V2.format(top="/"), "nonsense\n\n0::/\n", {"cpu.max": "50000 100000"})
    mounts = root / "proc/self/mountinfo"
    mounts.write_bytes(mount + mounts.read_bytes())
    assert quota(root) == 0.5


def test_a_mount_point_with_a_space(tmp_path):
    root = machine(tmp_path, V2.format(top="/").replace("/sys/fs/cgroup", r"/sys/fs/c\040g"), "0::/\n", {})
    (root / "sys/fs/c g").mkdir(parents=True)
    (root / "sys/fs/c g/cpu.max").write_text("150000 100000")
    assert quota(root) == 1.5


def test_no_control_groups(tmp_path):
    assert quota(tmp_path) is None


@pytest.mark.parametrize(("share", "count"), [(None, 4), (0.5, 1), (1.5, 1), (2.0, 2), (3.9, 3), (16.0, 4)])
def test_cores_are_those_of_the_affinity_and_whole_ones_of_the_quota(monkeypatch, share, count):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 2, 3, 5}, raising=False)
    monkeypatch.setattr(threads, "quota", lambda: share)
    assert cores() == count


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs affinities")
def test_the_threads_of_torch_are_those_of_the_affinity():
    one = min(os.sched_getaffinity(0))
    code = f"import os; os.sched_setaffinity(0, {{{one}}}); from polyrelu.threads import prepare; prepare(); "
    assert run("-c", code + "import torch; print(torch.get_num_threads())").stdout == "1\n"
