package fencectl

import (
	"strings"
	"testing"

	"holdfast/internal/clikit"
	"holdfast/pkg/fence"
	"holdfast/pkg/regfile"
)

// A remedy is made to be pasted: it moves what lies at a name of the fence's own, and nothing that the machine may need.
func TestOnlyTheFencesOwnNamesAreMovedAside(t *testing.T) {
	garden := fence.Garden{ID: "20261130T050322-abcdef", MetaRoot: "/meta"}
	for path, moved := range map[string]bool{
		"/s1/" + fence.ClaimName: true, "/s1/" + fence.TxName: true, "/s1/" + fence.HoldName: true, "/s1/" + fence.BreaksName: true,
		garden.ArmLockPath(): true,
		"/dev/null":          false, "/etc/passwd": false, "/tmp/ticket": false, "/meta/sessions/x.json": false,
	} {
		s := &session{dir: "/s1", ticket: "/dev/null", garden: garden}
		err := &regfile.Error{Code: regfile.CodeNotRegular, Path: path, Kind: regfile.CharDevice}
		remedy := s.refusal(err).Remedy
		if moved && remedy != "mv -n -- "+clikit.Quote(path)+" "+clikit.Quote(path+".aside") || !moved && !strings.HasPrefix(remedy, "none is safe: ") {
			t.Errorf("%s: %s", path, remedy)
		}
	}
}
