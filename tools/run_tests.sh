#!/usr/bin/env bash
# The whole test suite, in an environment that has all it needs.
#
#     bash tools/run_tests.sh [pytest's arguments]
#
# MMPE_STACK    stock (the default) or onedl: see setup_env.sh
# MMPE_OPS      0 doesn't compile mmcv's ops: no test on a CPU needs them. The
#               default, 1, tests beside them, as users have it on GPUs
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

ops=(--ops)
case "${MMPE_OPS:-1}" in
    1) ;;
    0) ops=() ;;
    *)
        echo "MMPE_OPS must be 0 or 1, got: $MMPE_OPS" >&2
        exit 1
        ;;
esac
bash tools/setup_env.sh ${ops[@]+"${ops[@]}"}
venv=".venv-${MMPE_STACK:-stock}"
exec "${venv%-stock}/bin/python" -m pytest "$@"
