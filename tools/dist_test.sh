#!/usr/bin/env bash
# Test with several processes, one per GPU; without GPUs, on the CPU.
#   tools/dist_test.sh CONFIG CHECKPOINT GPUS [arguments of test.py]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/launch.sh"

(( $# >= 3 )) || usage 'tools/dist_test.sh CONFIG CHECKPOINT GPUS [--work-dir DIR --out FILE.pkl --show-dir DIR --tta --cfg-options KEY=VALUE ...]'
require_file config "$1"
require_file checkpoint "$2"
launch "$3" test.py "$1" "$2" "${@:4}"
