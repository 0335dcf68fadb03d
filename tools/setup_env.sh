#!/usr/bin/env bash
# Make .venv in this checkout: torch, the OpenMMLab packages and mmpe itself; or
# .venv-onedl, with their maintained fork OneDL instead. Both can be there.
# Run it again at any time: it keeps what is in order and mends what an
# interrupted run left.
#
#     bash tools/setup_env.sh          mmcv without its compiled ops, unless they
#                                      were built before: about 2 minutes
#     bash tools/setup_env.sh --ops    mmcv with them: 10 minutes more, once
#
# MMPE_STACK    stock (the default) or onedl: whose packages
# PYTHON        the Python to use, 3.10 to 3.12
# MMPE_TORCH    what to have pip install for torch, options included, such as
#               "torch==2.13.0 --index-url URL"; remembered
# MMPE_CACHE    where built wheels are kept; ~/.cache/mmpe
set -euo pipefail

default_torch=torch==2.13.0
# MMPretrain asks for no torchvision, which must be that of the torch: its data
# sets need one, its models do without in the tests.
packages=('setuptools<82' wheel ftfy regex prettytable pycocotools matplotlib
    mmpretrain==1.2.0 'importlib_metadata<8' einops mat4py modelindex
    pytest hypothesis)
stack="${MMPE_STACK:-stock}"

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
venv="$root/.venv-$stack"
venv="${venv%-stock}"
python="$venv/bin/python"
log="$venv/setup.log"
cache="${MMPE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/mmpe}"

say() { echo "[setup] $*"; }

fail() {
    echo "[setup] $*" >&2
    exit 1
}

# Runs a command quietly; if it fails, shows what it said.
quietly() {
    "$@" >"$log" 2>&1 </dev/null && return
    tail -n 40 "$log" >&2
    fail "This failed: $*"
}

case "$stack" in
    stock)
        mmcv=mmcv==2.1.0
        packages+=(mmengine==0.10.7 mmdet==3.3.0 mmsegmentation==1.2.2)
        ;;
    onedl)
        mmcv=onedl-mmcv==2.3.6
        packages+=(onedl-mmengine==0.10.12 onedl-mmdetection==3.5.1
            onedl-mmsegmentation==1.4.2)
        ;;
    *) fail "MMPE_STACK must be stock or onedl, got: $stack" ;;
esac
mmcv_name="${mmcv%==*}"
wheel_name="${mmcv_name//-/_}"

pip() { quietly "$python" -m pip "$@"; }

# pip would compile every module, which takes most of its time; Python compiles
# those that it imports, unless it is told not to.
install() {
    local compile=--no-compile
    [[ -z "${PYTHONDONTWRITEBYTECODE:-}" ]] || compile=--compile
    pip install "$compile" "$@"
}

# Waits for whoever holds the lock on a file that is open as descriptor $1.
lock() {
    command -v flock >/dev/null || return 0
    flock -n "$1" && return
    say "Waiting for another set-up to end"
    flock "$1"
}

find_python() {
    local candidates=(python3 python3.12 python3.11 python3.10) candidate
    [[ -z "${PYTHON:-}" ]] || candidates=("$PYTHON")
    for candidate in "${candidates[@]}"; do
        "$candidate" -c 'import sys; v = sys.version_info
sys.exit(not (3, 10) <= v < (3, 13))' 2>/dev/null || continue
        "$candidate" -c 'import ensurepip, venv' 2>/dev/null || fail \
            "$candidate can't make virtual environments. Install its venv" \
            "package (Debian: apt-get install python3-venv)"
        base_python="$candidate"
        return
    done
    fail "mmpe needs Python 3.10, 3.11 or 3.12, and there is none among" \
        "${candidates[*]}. Install one (Debian: apt-get install python3" \
        "python3-venv) or say where it is: PYTHON=/path/to/python3"
}

has_cuda() {
    nvidia-smi >/dev/null 2>&1 && "$1" -c 'import sys, torch
sys.exit(torch.version.cuda is None)' 2>/dev/null
}

require_compiler() {
    command -v "${CXX:-c++}" >/dev/null || fail \
        "Building mmcv's ops needs a C++ compiler" \
        "(Debian: apt-get install g++)"
    [[ -f "$("$1" -c 'import sysconfig
print(sysconfig.get_path("include"))')/Python.h" ]] || fail \
        "Building mmcv's ops needs Python's headers" \
        "(Debian: apt-get install python3-dev)"
}

# A virtual environment. One that we did not make is used, but never removed.
make_venv() {
    local made_at broken=''
    if made_at="$(cat "$venv/mmpe-venv" 2>/dev/null)"; then
        [[ -e "$venv/mmpe-base" ]] || broken="The last set-up did not end"
        [[ "$made_at" == "$venv" ]] || broken="This checkout has moved"
    fi
    if [[ -n "$broken" ]]; then
        say "$broken: starting ${venv##*/} anew"
        rm -rf "$venv"
    fi
    "$python" -c 'import pip' 2>/dev/null && return
    [[ ! -e "$venv" || -e "$venv/mmpe-venv" ]] ||
        fail "$venv is there but doesn't work: remove it"
    rm -rf "$venv"
    mkdir "$venv"
    echo "$venv" >"$venv/mmpe-venv"
    quietly "$base_python" -m venv "$venv"
    if has_cuda "$base_python"; then
        say "Keeping the torch of $base_python, which has CUDA"
        # --system-site-packages would not see into an active environment.
        "$base_python" -c 'import pathlib, torch
print(pathlib.Path(torch.__file__).parents[1])' \
            >"$(echo "$venv"/lib/python*/site-packages)/torch_of_base.pth"
    fi
}

install_base() {
    rm -f "$venv/mmpe-base" "$venv/mmpe-mmcv"
    [[ "$torch" == "$default_torch" ]] || echo "$torch" >"$venv/mmpe-torch"
    if [[ -n "${MMPE_TORCH:-}" ]] || ! has_cuda "$python"; then
        say "Installing $torch: about a minute"
        # shellcheck disable=SC2086  # several arguments
        install $torch
    fi
    if nvidia-smi >/dev/null 2>&1 && ! has_cuda "$python"; then
        say "Note: there is a GPU, but this torch can't use it. For one that" \
            "can, run again with MMPE_TORCH set (see the top of $0)"
    fi
    say "Installing MMDetection and what it needs: about a minute"
    install "${packages[@]}"
    # OpenCV's usual wheel wants libGL, which servers lack.
    if ! "$python" -c 'import cv2' 2>/dev/null; then
        pip uninstall -y opencv-python
        install opencv-python-headless
    fi
    install --no-deps --no-build-isolation --use-pep517 -e "$root"
    echo "$fingerprint" >"$venv/mmpe-base"
}

# Everything that a wheel of mmcv with its ops depends on, as a folder's name.
ops_key() {
    "$python" - "$mmcv" <<'PYTHON'
import os, platform, sys, sysconfig
import torch

device = 'cpu'
if torch.cuda.is_available() or os.getenv('FORCE_CUDA') == '1':
    capabilities = {torch.cuda.get_device_capability(i)
                    for i in range(torch.cuda.device_count())}
    arch = os.getenv('TORCH_CUDA_ARCH_LIST') or ' '.join(
        f'{major}.{minor}' for major, minor in sorted(capabilities))
    device = f'cuda{torch.version.cuda or torch.version.hip}-{arch}'
key = '-'.join([
    sys.argv[1].replace('==', '-'), sysconfig.get_config_var('SOABI'),
    *platform.libc_ver(), f'torch{torch.__version__}',
    f'cxx11abi{int(torch.compiled_with_cxx11_abi())}', device])
print(''.join(c if c.isalnum() or c in '-+._' else '_' for c in key))
PYTHON
}

# The wheel in the cache, if it is there.
find_wheel() {
    local wheels=("$cache/$key/$wheel_name"-*.whl)
    [[ -f "${wheels[0]}" ]] && wheel="${wheels[0]}"
}

# A subshell, so that its trap is its own.
build_wheel() (
    require_compiler "$python"
    if has_cuda "$python"; then
        [[ -x "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" ]] ||
            command -v nvcc >/dev/null || fail "Building mmcv's ops for the" \
            "GPU needs nvcc, of the CUDA toolkit that torch was built with"
    fi
    install ninja psutil
    jobs="${MAX_JOBS:-$("$python" -c 'import os; print(os.cpu_count())')}"
    say "Building $mmcv with its compiled ops, once for this torch:" \
        "about $((20 / jobs + 1)) minutes on $jobs cores, longer for a GPU"
    folder="$(mktemp -d "$cache/build.XXXXXX")"
    # The sleep outlives us: it must not hold our locks nor our output open.
    while sleep 60 >/dev/null 2>&1 8>&- 9<&-; do
        say "  files compiled so far:" \
            "$(grep -o '\[[0-9]*/[0-9]*\]' "$log" | tail -n 1 | grep . || echo 0)"
    done &
    trap 'kill $!; rm -rf "$folder"' EXIT
    # pip's own cache may hold a build for another torch, or one without ops.
    PATH="$venv/bin:$PATH" MMCV_WITH_OPS=1 MAX_JOBS="$jobs" pip wheel -v \
        --no-deps --no-build-isolation --no-cache-dir --no-binary "$mmcv_name" \
        --wheel-dir "$folder" "$mmcv"
    "$python" -m zipfile -l "$folder"/*.whl | grep '^mmcv/_ext\.' >/dev/null ||
        fail "mmcv was built without its ops (log: $log)"
    mkdir -p "$cache/$key"
    mv "$folder"/*.whl "$cache/$key/"
)

# mmcv with its ops if they are wanted ($1) or were built before.
install_mmcv() {
    local key wheel="$mmcv" options=(--no-deps --ignore-installed)
    key="$(ops_key)"
    if ! find_wheel && [[ "$1" == ops ]]; then
        mkdir -p "$cache"
        exec 8>"$cache/lock"
        lock 8
        find_wheel || build_wheel
        find_wheel
        exec 8>&-
    fi
    kind=lite
    [[ "$wheel" != *.whl ]] || kind=ops
    if [[ "$kind" == lite && "$stack" == stock ]]; then
        wheel="mmcv-lite==${mmcv#*==}"
    elif [[ "$kind" == lite ]]; then
        # The fork has no package without ops, but pip builds it without them
        # where that doesn't see torch. Its cache may hold a build with them.
        options+=(--no-cache-dir --no-binary "$mmcv_name")
    fi
    say "Installing mmcv ($kind)"
    rm -f "$venv/mmpe-mmcv"
    # Both kinds own the same folder.
    pip uninstall -y mmcv mmcv-lite onedl-mmcv
    rm -rf "$venv"/lib/python*/site-packages/mmcv
    install "${options[@]}" "$wheel"
    [[ "$kind" == lite ]] || quietly "$python" -c 'import torch, mmcv._ext'
    echo "$kind" >"$venv/mmpe-mmcv"
}

want=lite
case "${1:-}" in
    '') ;;
    --ops) want=ops ;;
    *) fail "Usage: bash tools/setup_env.sh [--ops]" ;;
esac

exec 9<"${BASH_SOURCE[0]}"
lock 9

torch="${MMPE_TORCH:-$(cat "$venv/mmpe-torch" 2>/dev/null ||
    echo "$default_torch")}"
fingerprint="$(echo "$root $torch" |
    cat - "${BASH_SOURCE[0]}" "$root/setup.py" | cksum)"

if [[ "$(cat "$venv/mmpe-base" 2>/dev/null)" != "$fingerprint" ]] ||
    ! "$python" -c 'import pip' 2>/dev/null; then
    find_python
    [[ "$want" == lite ]] || compgen -G "$cache/*/$wheel_name-*.whl" >/dev/null ||
        require_compiler "$base_python"
    make_venv
    install_base
fi
kind="$(cat "$venv/mmpe-mmcv" 2>/dev/null || true)"
[[ "$kind" == ops || "$kind" == "$want" ]] || install_mmcv "$want"
say "Ready: $venv (mmcv: $kind)"
