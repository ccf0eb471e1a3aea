"""`driftgp compare` on five public streams and bikes, as Markdown: `python -m benchmarks.comparisons [--rows 8000]`.

The files are those of DRIFTGP_DATA. Each command stands above its table.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

CLIMATE = "T1,RH_1,T2,RH_2,T3,RH_3,T6,RH_6,T8,RH_8,T_out,RH_out,Windspeed,Tdewpoint"
COMMANDS = {
    "streams/fried.csv.gz": "--target target",
    "streams/kin40k_10k.csv.gz": "--target y",
    "streams/air_quality_hourly.csv.gz": "--target co_gt --features "
    "pt08_s1_co,pt08_s2_nmhc,pt08_s3_nox,pt08_s4_no2,pt08_s5_o3,t,rh,ah",
    "streams/appliances_energy_10min.csv.gz": f"--target Appliances --lags 1,2,3,144 --features {CLIMATE}",
    "streams/metro_traffic_hourly.csv.gz": "--target traffic_volume --lags 1,2,3,24,168 --calendar "
    "--features temp,clouds_all",
    "bike_sharing_hour.csv.gz": "--target cnt --lags 1,2,3,24,168 --calendar "
    "--features temp,hum,windspeed,holiday,workingday",
}


def table(file: str, options: str, rows: int) -> str:
    """The command, its verdict and its table."""
    told = [*shlex.split(options), "--rows", str(rows)]
    place = Path(os.environ.get("DRIFTGP_DATA", ".")) / file
    command = [sys.executable, "-m", "driftgp", "compare", str(place), *told, "--json"]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    lines = [f"```console\n$ driftgp compare {file} {' '.join(told)}\n```\n\n{found['verdict']}\n"]
    lines += ["| method | RMSE | / driftgp | p | MAE | CRPS | in 95 % | µs per row |", "|---|" + "---:|" * 7]
    for line in found["methods"]:
        p = "–" if line["p"] is None else "<0.001" if line["p"] < 0.001 else f"{line['p']:.3f}"
        crps = "–" if line["crps"] is None else f"{line['crps']:.4g}"
        inside = "–" if line["coverage"] is None else f"{line['coverage']:.1%}"
        figures = f"{line['rmse']:.4g} | {line['ratio']:.2f} | {p} | {line['mae']:.4g} | {crps} | {inside}"
        lines.append(f"| {line['method']} | {figures} | {line['microseconds']:.0f} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=8000)
    parser.add_argument("--only", default="", help="part of a file's name")
    chosen = parser.parse_args()
    for name, settings in COMMANDS.items():
        if chosen.only in name:
            print(table(name, settings, chosen.rows), flush=True)
