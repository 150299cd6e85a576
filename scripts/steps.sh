# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Steps of scripts/test and scripts/quickstart: each says what it does and how long it took, and missing Debian packages
# are installed by root or named with the command that installs them. Sourced by bash, from the root of the tree.

# step NAME COMMAND...: runs the command; its exit code is the step's.
step() {
  local name=$1 begin=$SECONDS status=0
  shift
  echo "== $name"
  "$@" || status=$?
  if ((status)); then
    echo "== $name: FAILED with exit code $status after $((SECONDS - begin)) s"
  else
    echo "== $name: $((SECONDS - begin)) s"
  fi
  return "$status"
}

# need_packages PACKAGE...: after it they are installed; otherwise it says what to do, and fails.
need_packages() {
  local missing=() package
  if ! command -v dpkg-query apt-get > /dev/null; then
    echo "This is not a Debian system, so nothing is installed here. What is needed, by Debian's names: $*"
    return 0
  fi
  for package in "$@"; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2> /dev/null) == installed ]] || missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  if ((EUID != 0)); then
    echo "Missing Debian packages. As you are not root, please run:"
    echo "    sudo apt-get update && sudo apt-get install --yes --no-install-recommends ${missing[*]}"
    return 1
  fi
  echo "Installing ${missing[*]}"
  apt-get -qq update &&
    DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends "${missing[@]}" < /dev/null
}
