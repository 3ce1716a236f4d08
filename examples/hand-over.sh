#!/bin/sh
# A session that is handed from a parent to exactly one child, on a fresh directory: enrolled, closed, reserved, adopted,
# observed; then a launch that failed is withdrawn, and a parent that died is taken over. Needs jq.
set -eu

home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
cd "$home"
mkdir meta
garden=20261130T092000-0a1b2c

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
citizen() { echo --garden $garden --meta-root meta; }

say "An agent owns its session, and enrols it under a garden id"
fencectl run --dir s1 --create -- sh -c "
	fencectl enroll $(citizen) --cwd '$home' --ticket \"\$FENCE_TICKET\" | jq -c '{code, gardenId, resource}'"
fencectl show --dir s1 | jq -c '{code, owner: .claim.owner.pid, end: .claim.end}'

say "A launcher reserves the closed session for one child; nobody else is admitted meanwhile"
g=$(fencectl reserve $(citizen) --owner-pid $$ | jq -r .generation)
fencectl run --dir s1 -- true || echo "refused: $?"
fencectl observe --dir s1 --generation "$g" | jq -c .code

say "The child, under a fleet lease, adopts exactly that reservation"
leasectl run --take-over -- fencectl run --dir s1 --adopt-garden $garden --meta-root meta --adopt-generation "$g" -- \
	sh -c "echo the child works in \$FENCE_DIR; fencectl observe --dir s1 --generation $g | jq -c .code"

say "A launch that failed is withdrawn by its parent: the row before it returns"
g=$(fencectl run --dir s1 -- sh -c "fencectl enroll $(citizen) --cwd '$home' --ticket \"\$FENCE_TICKET\"" >/dev/null &&
	fencectl reserve $(citizen) --owner-pid $$ | jq -r .generation)
fencectl withdraw --dir s1 --generation "$g" --owner-pid $$ | jq -c '{code, state: .claim.state}'

say "A parent that died leaves a reservation, which the next parent takes over"
sh -c "fencectl reserve $(citizen) --owner-pid \$\$ >reservation"
fencectl explain --dir s1 | jq -c '{code, row: .row.name}'
fencectl reserve $(citizen) --owner-pid $$ | jq -c '{code, reclaimed: .claim.reclaimedFrom.state}'
