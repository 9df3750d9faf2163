#!/bin/bash
# A search over the nodes of one Slurm job. Options of sbatch go before the script's name, those of `agent search` after:
#   STUDY=night-run sbatch --nodes=50 agent/clusters/slurm.sh --engine sglang --model /models/big --tp 8 --budget 200
# Submit it where `agent` and `ray` are on PATH, from a folder that all nodes see. Submitted again with the same STUDY,
# it goes on. `scancel --batch --signal=TERM JOB` ends the search cleanly; a plain `scancel` kills Ray first.
#SBATCH --job-name=agent-search
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --time=12:00:00
#SBATCH --signal=B:TERM@300
#SBATCH --requeue
#SBATCH --no-kill
# --mem=0: all memory of each node. --no-kill: a node that fails costs its trial and not the job.
set -euo pipefail

study=${STUDY:-slurm-$SLURM_JOB_ID}
# The state must lie where the first node of a later job finds it too; the trials' own nodes need not see it.
export AGENT_HOME=${AGENT_HOME:-$SLURM_SUBMIT_DIR/agent-state}
port=${RAY_PORT:-6379}

# Whoever may talk to Ray runs code as you. `srun` hands the environment on, so nothing is written to a disk.
export RAY_AUTH_MODE=token SLURM_EXPORT_ENV=ALL
RAY_AUTH_TOKEN=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
export RAY_AUTH_TOKEN
# Ray would kill a trial that only loads weights; and a head with many nodes holds many sockets.
export RAY_memory_monitor_refresh_ms=0
ulimit -n "$(ulimit -Hn)"

mapfile -t hosts < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
head=${hosts[0]}
# Where the other nodes find it: /etc/hosts may have the machine's own name on the loopback interface.
address=$(getent ahostsv4 "$head" | awk '$1 !~ /^127\./ { print $1; exit }')
address=${address:-$(hostname -I | awk '{ print $1 }')}

start_ray() { # only logs and results go through Ray's object store; the engines need /dev/shm for themselves
    srun --nodes=1 --ntasks=1 --overlap --cpu-bind=none --nodelist="$1" \
        ray start --block --disable-usage-stats --object-store-memory=1000000000 "${@:2}" &
}

start_ray "$head" --head --node-ip-address="$address" --port="$port"
first=$!
until ray status --address "$address:$port" > /dev/null 2>&1; do
    if ! kill -0 "$first" 2> /dev/null; then
        echo "Ray did not start on $head; what it said stands above" >&2
        exit 4
    fi
    sleep 1
done
for host in "${hosts[@]:1}"; do
    start_ray "$host" --address="$address:$port"
done

# A node that comes up later joins the search. This script runs on the first node, which is the head.
# STORAGE: a database, where the state lies on a network file system. RUN: words for search and resume alike.
where=(${STORAGE:+--storage "$STORAGE"})
read -ra run <<< "--ray-address $address:$port ${RUN:-}"
known=0
agent status "$study" "${where[@]}" > /dev/null || known=$?
case $known in
    0) agent resume "$study" "${where[@]}" "${run[@]}" & ;;
    2) agent search --name "$study" "${where[@]}" "${run[@]}" "$@" & ;;
    *) exit "$known" ;; # the storage cannot be read now: nobody knows whether there is such a study
esac
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
