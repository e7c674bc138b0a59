#!/usr/bin/env bash
# The newcomer's test: clones what is committed, with an empty HOME and empty package caches, and
# runs make targets in the clone, one after the other; nox-NAME is a session of noxfile.py.
#
# usage: tools/fresh.sh [VARIABLE=value …] [target …]      (default: demo test)
#
# What is joined by + (lint+types+release) runs two targets at a time: those of one process each.
# KEEP=1 keeps the folder. Exit code 0 when all targets succeed; the first that fails ends the run.
# Where the packages come from is the machine's affair: pip's and uv's own files of settings that
# lie in the real HOME are seen in the empty one.
set -u
tree=$(cd "$(dirname "$0")/.." && pwd) || exit 2
[ -n "$(git -C "$tree" status --porcelain)" ] && echo "not in the clone: what is not committed" >&2
work=$(mktemp -d "${TMPDIR:-/tmp}/plugrt-fresh.XXXXXX") || exit 2
leave() { [ "${KEEP:-0}" = 1 ] && echo "kept: $work" || rm -rf "$work"; }
trap leave EXIT
trap 'exit 130' INT TERM

home=$work/home
mkdir -p "$home/.config" "$work/tmp"
for settings in pip uv; do
    real=${XDG_CONFIG_HOME:-$HOME/.config}/$settings
    [ -d "$real" ] && ln -s "$real" "$home/.config/$settings"
done
git clone --quiet --no-hardlinks "$tree" "$work/clone" || exit 2

unset UV_CACHE_DIR PIP_CACHE_DIR VIRTUAL_ENV PYTHONPATH PLUGRT_CACHE_DIR JAX_COMPILATION_CACHE_DIR
unset MAKEFLAGS MAKELEVEL XDG_DATA_HOME XDG_STATE_HOME
# Images of Python want none beside their sources; here every program would compile its imports.
unset PYTHONDONTWRITEBYTECODE
export HOME=$home XDG_CONFIG_HOME=$home/.config XDG_CACHE_HOME=$home/.cache TMPDIR=$work/tmp
cd "$work/clone" || exit 2

variables=() targets=()
for word in "$@"; do
    case $word in *=*) variables+=("$word") ;; *) targets+=("$word") ;; esac
done
[ ${#targets[@]} = 0 ] && targets=(demo test)
for target in "${targets[@]}"; do
    start=$SECONDS
    beside=()
    [ "$target" = "${target//+/}" ] || beside=(-j2 --output-sync=target)
    # shellcheck disable=SC2086  # the names of targets, one word each
    make "${beside[@]}" ${target//+/ } "${variables[@]}"
    code=$?
    echo "fresh clone: make $target: exit $code after $((SECONDS - start)) s"
    [ "$code" = 0 ] || exit 1
done
