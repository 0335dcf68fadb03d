# What the dist_*.sh and slurm_*.sh scripts share. Sourced, not run.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

fail() {
    echo "$(basename "$0"): error: $1" >&2
    exit 2
}

usage() {
    echo "usage: $1" >&2
    echo 'environment: PORT (a free one), NNODES (1), NODE_RANK (0), MASTER_ADDR (127.0.0.1), PYTHON' >&2
    exit 2
}

slurm_usage() {
    echo "usage: $1" >&2
    echo 'environment: GPUS (8), GPUS_PER_NODE (8, at most GPUS), CPUS_PER_TASK (5), SRUN_ARGS, PORT (by the job), PYTHON' >&2
    exit 2
}

# require_file WHAT PATH; an address such as https://... is no file of ours.
require_file() {
    [[ $2 == *::* || $2 == *://* || -f $2 ]] || fail "no such $1 file: $2"
}

# require_number NAME VALUE LOWEST
require_number() {
    [[ $2 =~ ^[0-9]+$ ]] && (( 10#$2 >= $3 )) ||
        fail "$1 must be a whole number from $3, got: $2"
}

# The Python of an active environment, else that of the checkout, else any.
find_python() {
    if [[ -n ${PYTHON:-} ]]; then
        echo "$PYTHON"
    elif [[ -z ${VIRTUAL_ENV:-}${CONDA_PREFIX:-} && -x $ROOT/.venv/bin/python ]]; then
        echo "$ROOT/.venv/bin/python"
    else
        command -v python || command -v python3 || fail 'no python on the PATH'
    fi
}

# In a checkout mmpe is beside this folder; where a wheel put this, it is
# installed.
find_package() {
    [[ ! -d $ROOT/mmpe ]] || export PYTHONPATH=$ROOT${PYTHONPATH:+:$PYTHONPATH}
}

# require_gpus PROCESSES: with GPUs, each process needs one. Only where the
# driver lists too few is torch asked, which takes seconds: it may be one for
# CPUs, on which any number will do.
require_gpus() {
    local gpus
    [[ -n ${CUDA_VISIBLE_DEVICES-unset} ]] && gpus=$(nvidia-smi -L 2>/dev/null) || return 0
    gpus=$(grep -c '^GPU ' <<<"$gpus" || true)
    if [[ -n ${CUDA_VISIBLE_DEVICES:-} ]]; then
        gpus=$(tr ',' '\n' <<<"$CUDA_VISIBLE_DEVICES" | grep -c .)
    fi
    (( $1 > gpus )) || return 0
    gpus=$("$python" -c 'import torch; print(torch.cuda.device_count())') || return 0
    (( gpus == 0 || $1 <= gpus )) ||
        fail "$1 processes on this machine, but $gpus GPU(s); each process needs one (CUDA_VISIBLE_DEVICES='' runs on the CPU)"
}

# launch PROCESSES TOOL [ARGUMENTS]: run tools/TOOL in that many processes on
# this machine, as the node NODE_RANK of NNODES.
launch() {
    local processes=$1 tool=$2 nodes=${NNODES:-1} rank=${NODE_RANK:-0} python cores rendezvous
    shift 2
    require_number GPUS "$processes" 1
    require_number NNODES "$nodes" 1
    require_number NODE_RANK "$rank" 0
    (( rank < nodes )) || fail "NODE_RANK $rank is not below NNODES $nodes"
    [[ -z ${PORT:-} ]] || require_number PORT "$PORT" 1
    python=$(find_python)
    require_gpus "$processes"

    if (( nodes == 1 )) && [[ -z ${PORT:-} ]]; then
        # The operating system gives the port to the socket that keeps it, so
        # two jobs cannot be given the same one.
        rendezvous=(--standalone --local-addr=127.0.0.1)
    else
        # Several machines must know the port beforehand.
        rendezvous=(--nnodes="$nodes" --node-rank="$rank"
            --master-addr="${MASTER_ADDR:-127.0.0.1}" --master-port="${PORT:-29500}")
    fi

    # Without this torchrun takes one thread a process: a waste on a CPU.
    cores=$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)
    export OMP_NUM_THREADS=${OMP_NUM_THREADS:-$(( cores > processes ? cores / processes : 1 ))}
    find_package
    exec "$python" -m torch.distributed.run "${rendezvous[@]}" \
        --nproc-per-node="$processes" "$ROOT/tools/$tool" --launcher pytorch "$@"
}

# launch_slurm PARTITION JOB_NAME TOOL [ARGUMENTS]
launch_slurm() {
    local partition=$1 name=$2 tool=$3 gpus=${GPUS:-8} per_node python
    local -a more
    shift 3
    require_number GPUS "$gpus" 1
    per_node=${GPUS_PER_NODE:-$(( gpus < 8 ? gpus : 8 ))}
    require_number GPUS_PER_NODE "$per_node" 1
    require_number CPUS_PER_TASK "${CPUS_PER_TASK:-5}" 1
    [[ -z ${PORT:-} ]] || require_number PORT "$PORT" 1
    python=$(find_python)
    read -r -a more <<<"${SRUN_ARGS:-}"  # several words

    [[ -z ${PORT:-} ]] || export MASTER_PORT=$PORT
    find_package
    # One process that fails ends the others.
    exec srun -p "$partition" --job-name="$name" --gres=gpu:"$per_node" \
        --ntasks="$gpus" --ntasks-per-node="$per_node" \
        --cpus-per-task="${CPUS_PER_TASK:-5}" --kill-on-bad-exit=1 \
        ${more[@]+"${more[@]}"} \
        "$python" -u "$ROOT/tools/$tool" "$@" --launcher slurm
}
