#!/usr/bin/env bash
# Set up .venv, then train, test and compare five position encodings on 16
# real COCO images, on two CPU cores: about 7 minutes after the set-up. What is
# run is printed, and can be typed by hand.
#
#     bash tools/quickstart.sh [--segmentation]
#
# --segmentation   two encodings for semantic segmentation instead: 3 minutes
#
# QUICKSTART_OUT   folder for the runs; work_dirs/quickstart
# MMPE_STACK       stock (the default) or onedl: see setup_env.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if (( $# )) && [[ "$*" != --segmentation ]]; then
    echo 'usage: bash tools/quickstart.sh [--segmentation]' >&2
    exit 2
fi
bash tools/setup_env.sh
venv=".venv-${MMPE_STACK:-stock}"
# Warnings of the packages that mmpe stands on would bury the table.
exec "${venv%-stock}/bin/python" -W ignore tools/quickstart.py "$@"
