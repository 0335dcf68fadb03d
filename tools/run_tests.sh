#!/usr/bin/env bash
# The whole test suite, in an environment that has all it needs.
#
#     bash tools/run_tests.sh [pytest's arguments]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bash tools/setup_env.sh --ops
exec .venv/bin/python -m pytest "$@"
