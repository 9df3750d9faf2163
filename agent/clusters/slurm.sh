#!/bin/bash
# A search over the nodes of one Slurm job:  STUDY=night-run sbatch agent/clusters/slurm.sh --budget 200
# Words after the script's name go to `agent search`. Submitted again with the same STUDY, the study goes on.
#SBATCH --job-name=agent-search
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --exclusive
#SBATCH --time=12:00:00
#SBATCH --signal=B:TERM@300
#SBATCH --requeue
set -euo pipefail

study=${STUDY:-slurm-$SLURM_JOB_ID}
# The state must lie where the first node of a later job finds it too; the trials' own nodes need not see it.
export AGENT_HOME=${AGENT_HOME:-$SLURM_SUBMIT_DIR/agent-state}
port=${RAY_PORT:-6379}

# Whoever may talk to Ray runs code as you. `srun` hands the environment on, so nothing is written to a disk.
export RAY_AUTH_MODE=token
RAY_AUTH_TOKEN=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
export RAY_AUTH_TOKEN

mapfile -t hosts < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
head=${hosts[0]}
address=$(getent ahostsv4 "$head" | awk 'NR == 1 { print $1 }')

start_ray() {
    srun --nodes=1 --ntasks=1 --overlap --nodelist="$1" ray start --block --disable-usage-stats "${@:2}" &
}

start_ray "$head" --head --node-ip-address="$address" --port="$port"
until ray status --address "$address:$port" > /dev/null 2>&1; do sleep 1; done
for host in "${hosts[@]:1}"; do
    start_ray "$host" --address="$address:$port"
done

# A node that comes up later joins the search. This script runs on the first node, which is the head.
if agent status "$study" > /dev/null 2>&1; then
    agent resume "$study" --ray-address "$address:$port" &
else
    agent search --name "$study" --ray-address "$address:$port" "$@" &
fi
agent=$!
# Slurm tells this shell five minutes before the time is up: the search cleans up, and a later job goes on.
asked='' code=0
trap 'asked=1; kill -TERM "$agent"' TERM
wait "$agent" || code=$?
if [[ $asked ]]; then # `wait` ended by the signal, not by the search
    code=0
    wait "$agent" || code=$?
fi
exit "$code"
