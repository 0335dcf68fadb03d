#!/usr/bin/env bash
# Test on a Slurm cluster, one process per GPU.
#   [GPUS=16 SRUN_ARGS='--time=60'] tools/slurm_test.sh PARTITION JOB_NAME CONFIG CHECKPOINT [arguments of test.py]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/launch.sh"

(( $# >= 4 )) || slurm_usage 'tools/slurm_test.sh PARTITION JOB_NAME CONFIG CHECKPOINT [--work-dir DIR --out FILE.pkl --show-dir DIR --tta --cfg-options KEY=VALUE ...]'
require_file config "$3"
require_file checkpoint "$4"
launch_slurm "$1" "$2" test.py "$3" "$4" "${@:5}"
