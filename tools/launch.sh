# What the dist_*.sh scripts share. Sourced, not run.

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

# require_file WHAT PATH; an address such as https://... is no file of ours.
require_file() {
    [[ $2 == *://* || -f $2 ]] || fail "no such $1 file: $2"
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
    export PYTHONPATH=$ROOT${PYTHONPATH:+:$PYTHONPATH}
    exec "$python" -m torch.distributed.run "${rendezvous[@]}" \
        --nproc-per-node="$processes" "$ROOT/tools/$tool" --launcher pytorch "$@"
}
