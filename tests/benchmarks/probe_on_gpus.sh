#!/usr/bin/env bash
# What two GPUs offer, by `agent probe`: the torch engine's collectives, then SGLang's. Each takes two minutes at most.
# Usage: probe_on_gpus.sh OUT [ENGINE_PYTHON MODEL [DRAFT]]    (from the repository; `python3 -m agent` must work)
# Writes OUT/{torch,torch-sizes,sglang,sglang-warm}.{json,err} and OUT/times.txt (wall seconds, exit code).
# Multicast stays off: the variables below are only set where they are not set already.
set -u
out=$(mkdir -p "$1" && cd "$1" && pwd); python=${2:-}; model=${3:-}; draft=${4:-}
export NCCL_NVLS_ENABLE=${NCCL_NVLS_ENABLE:-0} NVSHMEM_DISABLE_NVLS=${NVSHMEM_DISABLE_NVLS:-1}
export TORCH_SYMM_MEM_DISABLE_MULTICAST=${TORCH_SYMM_MEM_DISABLE_MULTICAST:-1}
home=$(mktemp -d)
probe() {  # NAME WORDS…
  local name=$1 began=$SECONDS code; shift
  python3 -m agent probe --home "$home" --tp 2 --device cuda "$@" --json > "$out/$name.json" 2> "$out/$name.err"; code=$?
  echo "$name wall_s=$((SECONDS - began)) exit=$code" | tee -a "$out/times.txt"
}
probe torch
probe torch-sizes --sizes 14336,43008,114688,1M          # 43,008 B: 3 tokens × hidden 7168 in bfloat16
if [ -n "$python" ]; then
  words=(--engine sglang --engine-python "$python" --model "$model"); [ -n "$draft" ] && words+=(--draft "$draft")
  probe sglang "${words[@]}"
  probe sglang-warm "${words[@]}"                         # kernels are compiled by now
fi
python3 - "$out" <<'PY'
import json, pathlib, sys
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.json")):
    try:
        table = json.loads(path.read_text())
    except ValueError:
        print(f"{path.name}: no table; see {path.stem}.err")
        continue
    print(f"\n{path.stem}: {table['seconds']} s, {table['ended']}; {'; '.join(table['software'])}")
    for row in table["rows"]:
        name = " ".join(map(str, row["values"].values())) or "default"
        cells = [f"{c['bytes']}B {c['mode']} {c['us_p50']:.1f}" for c in row["calls"] if c["op"] == "all_reduce"]
        print(f"  {row['state']:<11} {row['pass_us'] or 0:>8.0f} us  {name:<40} {'  '.join(cells)}  {row['why'][:160]}")
PY
tar czf "$out/study.tgz" -C "$home" . 2>/dev/null; rm -rf "$home"
