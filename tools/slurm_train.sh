#!/usr/bin/env bash
# Train on a Slurm cluster, one process per GPU.
#   [GPUS=16 SRUN_ARGS='--time=2-0'] tools/slurm_train.sh PARTITION JOB_NAME CONFIG WORK_DIR [arguments of train.py]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/launch.sh"

(( $# >= 4 )) || slurm_usage 'tools/slurm_train.sh PARTITION JOB_NAME CONFIG WORK_DIR [--amp --auto-scale-lr --resume [FILE] --cfg-options KEY=VALUE ...]'
require_file config "$3"
launch_slurm "$1" "$2" train.py "$3" --work-dir "$4" "${@:5}"
