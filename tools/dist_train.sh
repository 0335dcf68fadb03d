#!/usr/bin/env bash
# Train with several processes, one per GPU; without GPUs, on the CPU.
#   tools/dist_train.sh CONFIG GPUS [arguments of train.py]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/launch.sh"

(( $# >= 2 )) || usage 'tools/dist_train.sh CONFIG GPUS [--work-dir DIR --amp --auto-scale-lr --resume [FILE] --cfg-options KEY=VALUE ...]'
require_file config "$1"
launch "$2" train.py "$1" "${@:3}"
