#!/bin/sh
# The main job on a fresh fleet: take the lease, prove that it is ours, be refused a second one, give it back.
set -eu
fleet=$(mktemp -d)
trap 'rm -rf "$fleet"' EXIT
cd "$fleet"

show() {
	printf '\n$ %s\n' "$*"
	"$@" || printf '(exit status %s)\n' "$?"
}

show leasectl status --format text
printf '\n$ eval "$(leasectl acquire --label demo --format sh)"\n'
eval "$(leasectl acquire --label demo --format sh)"
printf '\n$ echo $LEASE_HOLDER $LEASE_FENCE\n%s %s\n' "$LEASE_HOLDER" "$LEASE_FENCE"
show leasectl verify --min-remaining 10m --format text
printf '\nAnother program that asks now is refused, and told by whom:\n'
show leasectl acquire --format text
show cat state/orchestrator.lock
show leasectl release --holder "$LEASE_HOLDER" --format text
show leasectl history --format text
