"""The same function, settings and bits on Ray: one Ray for the module, and one that a run starts itself."""

import json
import os
import signal
import socket
import subprocess
import sys

import pytest
from swept import HERE, alive, begun, launch, open_gate, results
from timed import check_ended, limited, sweep_of, tries
from waiting import ended, wait_for

from polyrelu.errors import InputError
from polyrelu.progress import Progress
from polyrelu.sweep import Sweep, run_sweep
from polyrelu.sweep.engines.ray_engine import check_address, work
from polyrelu.sweep.record import FunctionVersion
from polyrelu.threads import SPINS

pytestmark = pytest.mark.waits
ray = pytest.importorskip("ray")
SQUARES = Sweep.grid("swept:square", {"x": [3, 0.5]})


def test_ray_that_is_not_installed_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r'Ray is not installed; pip install "polyrelu\[ray\]"'):
        run_sweep(SQUARES, tmp_path, engine="ray")


@pytest.mark.parametrize("form", ["{}", "ray://{}"])
def test_an_address_where_nobody_is_is_told_before_ray_is_asked(tmp_path, form, monkeypatch):
    monkeypatch.setattr(ray, "init", lambda **_: pytest.fail("Ray would try for minutes"))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens
        address = form.format(f"127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(InputError, match=rf"^address={address}: nothing answers there \(Connection refused\)"):
            run_sweep(SQUARES, tmp_path, engine="ray", address=address)


@pytest.mark.parametrize("address", ["head", "head:", "head:99999", "http://head:80", "head:80/x"])
def test_an_address_that_is_none(address):
    with pytest.raises(InputError, match="expected host:port, ray://host:port or auto"):
        check_address(address)


@pytest.mark.slow
def test_something_else_at_the_address(monkeypatch):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        address = f"127.0.0.1:{other.getsockname()[1]}"
        connect = lambda host, port, until: socket.create_connection((host, port))  # noqa: E731 - as slow as it may be
        monkeypatch.setattr("polyrelu.sweep.engines.ray_address._connected", connect)
        with pytest.raises(InputError, match="expected a Ray cluster, but what listens there says nothing within 2 s"):
            check_address(address)
        # Where that cannot be seen from outside, Ray is asked, and not for minutes.
        monkeypatch.setattr("polyrelu.sweep.engines.ray_address.JOIN_SECONDS", 3.0)
        monkeypatch.setattr("polyrelu.sweep.engines.ray_address.probe_address", lambda place: place)
        with pytest.raises(InputError, match=r"expected a Ray cluster to connect to \(no answer within 3 s"):
            check_address(address)


@pytest.fixture(scope="module")
def cluster():
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("GOMP_SPINCOUNT")  # workers must set it themselves
        ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield ray
    ray.shutdown()


class Killer(Progress):
    """Kills the worker that has the setting 2, once, then lets it go on."""

    def __init__(self, mark, gate):
        self.mark, self.gate, self.killed = mark, gate, None

    def update(self):
        for x, process in begun(self.mark):
            if x == 2 and self.killed is None:
                os.kill(process, signal.SIGKILL)
                self.killed = process
                open_gate(self.gate, 2)


@pytest.mark.slow
def test_a_killed_worker_costs_a_try_and_the_bits_are_those_of_the_local_engine(tmp_path, cluster):
    mark, gate = tmp_path / "mark", tmp_path / "gate"
    wanted = Sweep("swept:slow", [{"x": x, "gate": str(gate), "mark": str(mark)} for x in range(6)])
    killer = Killer(mark, gate)
    open_gate(gate, 0, 1, 3, 4, 5)
    records = run_sweep(wanted, tmp_path / "ray", engine="ray", progress=killer)
    tries = begun(mark)
    assert killer.killed and not any(record.failed for record in records)
    assert [x for x, _ in tries].count(2) == 2 and len({process for x, process in tries if x == 2}) == 2
    assert len({process for _, process in tries}) <= 4  # workers are used again
    run_sweep(wanted, tmp_path / "local", workers=2)
    assert results(tmp_path / "ray") == results(tmp_path / "local") and len(results(tmp_path / "ray")) == 6
    assert ray.is_initialized()  # a Ray that was there before stays


@pytest.mark.slow
def test_failures_and_crashes_are_records_and_the_rest_is_done(tmp_path, cluster):
    moods = ["raises", "leaves", "exits", "fine"]
    sweep = Sweep("swept:moody", [{"x": x, "mood": mood} for x, mood in enumerate(moods)])
    raised, left, exited, fine = run_sweep(sweep, tmp_path, engine="ray")
    assert raised.error == "ValueError: 0 is not a good number" and "Traceback" in raised.details
    assert left.error == "worker died (WorkerCrashedError), 3 times" and exited.error == "SystemExit: 3"
    assert fine.result == 1.5350630092552098 and fine.file.startswith("results/")


@pytest.mark.slow
def test_a_time_limit_cancels_the_task_and_the_rest_is_done(tmp_path, monkeypatch, cluster):
    check_ended(tmp_path, limited(tmp_path, monkeypatch, "ray", time_limit=500))
    monkeypatch.undo()
    (tmp_path / "mark.go").touch()
    records = run_sweep(sweep_of(tmp_path), tmp_path / "out", engine="ray", time_limit=501)  # more time, another try
    assert [record.result for record in records] == [0, 4, 1] and tries(tmp_path).count(1) == 2


@pytest.mark.slow
def test_workers_have_one_thread_and_do_not_spin(tmp_path, cluster):
    (record,) = run_sweep(Sweep("swept:threads", [{}]), tmp_path, engine="ray")
    assert record.result == [1, 1, SPINS]


def test_another_version_on_the_cluster_is_refused(cluster):
    job = FunctionVersion("swept:square", "9+abc")
    with pytest.raises(
        InputError, match=r"its source on the Ray cluster is version 0\+.*, but this sweep is of 9\+abc"
    ):
        list(work(job, {"a": {"x": 1}}, None, None, Progress(), lambda: True))
    with pytest.raises(InputError, match="there is no module no_such_module_x to import on the Ray cluster"):
        list(
            work(FunctionVersion("no_such_module_x:f", "9+abc"), {"a": {"x": 1}}, None, None, Progress(), lambda: True)
        )


@pytest.mark.slow
def test_a_sweep_joins_a_cluster_by_its_address(tmp_path, cluster):
    address = cluster.get_runtime_context().gcs_address
    with pytest.raises(InputError, match="this process is already connected to a Ray"):
        run_sweep(SQUARES, tmp_path, engine="ray", address=address)
    joined = launch("swept:square", list(SQUARES.settings), tmp_path, engine="ray", address=address)
    _, message = ended(joined)
    assert joined.returncode == 0, message
    assert sorted(json.loads(one)["square"] for one in results(tmp_path).values()) == [0.25, 9]


@pytest.mark.slow
@pytest.mark.parametrize("blow", [signal.SIGINT, signal.SIGKILL])
def test_a_run_has_a_ray_of_its_own_which_goes_with_it_and_the_local_engine_can_go_on(tmp_path, blow):
    out, mark, gate = tmp_path / "out", tmp_path / "mark", tmp_path / "gate"
    wanted = [{"x": x, "gate": str(gate), "mark": str(mark)} for x in range(12)]
    open_gate(gate, 0, 1)
    run = launch("swept:slow", wanted, out, engine="ray", workers=2)
    wait_for(lambda: len(results(out)) == 2 and len(begun(mark)) == 4)
    if blow == signal.SIGINT:
        os.killpg(run.pid, blow)  # as a terminal does: Ray's own processes are in this group
        open_gate(gate, "all")
    else:
        run.kill()
    _, message = ended(run)
    assert run.returncode == -blow
    kept = results(out)
    if blow == signal.SIGINT:
        assert message.rstrip().endswith("KeyboardInterrupt") and 4 <= len(kept) == len(begun(mark)) < 12
    else:
        assert len(kept) == 2
    wait_for(lambda: not any(alive(process) for _, process in begun(mark)))
    open_gate(gate, "all")
    run_sweep(Sweep("swept:slow", wanted), out, workers=2)
    run_sweep(Sweep("swept:slow", wanted), tmp_path / "calm", workers=1)
    assert results(out) == results(tmp_path / "calm") and results(out).items() >= kept.items()
    if blow == signal.SIGINT:
        wait_for(lambda: not _group(run.pid))


@pytest.mark.slow
def test_a_second_ctrl_c_ends_the_command_and_every_process_of_its_ray(tmp_path):
    (tmp_path / "slow.toml").write_text(
        'function = "swept:slow"\ngrid.x = [0, 1, 2]\n'
        f'fixed.gate = "{tmp_path / "gate"}"\nfixed.mark = "{tmp_path / "mark"}"\n'
    )
    path = os.pathsep.join([HERE, *filter(None, [os.environ.get("PYTHONPATH")])])
    words = ["sweep", "slow.toml", "--engine", "ray", "--workers", "2", "--out", "out"]
    run = subprocess.Popen(
        [sys.executable, "-m", "polyrelu", *words], cwd=tmp_path, stderr=subprocess.PIPE, text=True,
        start_new_session=True, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    wait_for(lambda: len(begun(tmp_path / "mark")) >= 2)
    os.killpg(run.pid, signal.SIGINT)
    said = "".join(iter(run.stderr.readline, "polyrelu: finishing the settings under way, then stopping; "
                        "Ctrl-C again stops at once\n"))  # fmt: skip
    os.killpg(run.pid, signal.SIGINT)
    said += run.stderr.read()
    run.stderr.close()
    assert run.wait() == 130 and "Traceback" not in said
    assert "0 of 3 settings are kept. Go on with: polyrelu sweep slow.toml --engine ray --workers 2 --out out" in said
    wait_for(lambda: not _group(run.pid))


def _group(leader: int) -> list[str]:
    """Processes of the session that a run began."""
    found = subprocess.run(["ps", "-o", "stat=,args=", "-s", str(leader)], capture_output=True, text=True)
    return [line for line in found.stdout.splitlines() if not line.startswith("Z")]
