"""The flow at the published size on a quiet machine and beside two busy processes: `python benchmarks/busy.py`.

D=1000, 6+4 clusters, n=20000, h=2000, p=3, as `polyrelu flow --p 3`; seconds on the clock for the whole command, in
turns: with the environment as it is (`plain`), and as the command sets it (`prepared`, see `polyrelu.threads`). Medians
and ranges of --repeats runs each, the ratio of busy to quiet, and whether all nets are the same bits. A core must be
free for each busy process and thread while it runs, or the numbers say nothing.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from safetensors.numpy import load_file

from polyrelu.threads import cores
from tools import PREPARED as SET
from tools.busy import beside, plain

PLAIN = [
    sys.executable,
    "-c",
    "from polyrelu.cli.application import app; app(prog_name='polyrelu')",
]  # not by its entry point
PREPARED = [sys.executable, "-m", "polyrelu"]
GOAL = 2.5


def seconds(program, words, folder, spins):
    environment = {**plain(), **({"GOMP_SPINCOUNT": spins} if spins else {})}
    began = time.perf_counter()
    subprocess.run(
        [*program, "flow", *words, "--quiet", "--out", folder], env=environment, check=True, stdout=subprocess.DEVNULL
    )
    spent = time.perf_counter() - began
    arrays = load_file(Path(folder) / "net.safetensors")
    return spent, hashlib.sha256(b"".join(arrays[name].tobytes() for name in sorted(arrays))).hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--busy", type=int, nargs="+", default=[0, 2], help="busy processes beside it")
    parser.add_argument("--spins", nargs="*", default=[], help="other values of GOMP_SPINCOUNT, in the same turns")
    parser.add_argument("--flow", default="--p 3", help="options of polyrelu flow")
    asked = parser.parse_args()
    ways = {"plain": (PLAIN, None), "prepared": (PREPARED, None)}
    ways |= {f"spins {count}": (PREPARED, count) for count in asked.spins}
    print(f"{cores()} cores for this process, load {os.getloadavg()[0]:.2f} before the start; prepared: {SET}")
    times, nets = {}, set()
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(asked.repeats):
            for count in asked.busy:
                for way, (program, spins) in ways.items():
                    with beside(count):
                        spent, net = seconds(program, asked.flow.split(), folder, spins)
                    times.setdefault((way, count), []).append(spent)
                    nets.add(net)
                    print(f"turn {turn + 1}: {way:12} beside {count}: {spent:6.2f} s", flush=True)
    print(f"\n{'':12}" + "".join(f"{f'beside {count}':>26}" for count in asked.busy) + f"{'ratio':>10}")
    for way in ways:
        middles = [statistics.median(times[way, count]) for count in asked.busy]
        cells = [f"{middle:.2f} s ({min(all_):.2f}-{max(all_):.2f})" for middle, all_ in
                 zip(middles, (times[way, count] for count in asked.busy), strict=True)]  # fmt: skip
        print(f"{way:12}" + "".join(f"{cell:>26}" for cell in cells) + f"{middles[-1] / middles[0]:>9.2f}x")
    print(f"goal: prepared at most {GOAL}x, and as fast as plain beside 0; all nets the same bits: {len(nets) == 1}")


if __name__ == "__main__":
    main()
