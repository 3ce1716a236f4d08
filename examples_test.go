package holdfast_test

import (
	"os/exec"
	"strings"
	"testing"

	"holdfast/internal/testkit"
)

// TestHandOverExample runs the story of a session that is handed on, and reads it as its reader does.
func TestHandOverExample(t *testing.T) {
	testkit.NeedTool(t, "jq")
	c := exec.Command("sh", "examples/hand-over.sh")
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	rest := string(out)
	for _, want := range []string{
		`"code":"enrolled"`, `"code":"closed"`, // the first owner
		"refused: 125", `"not-yet-adopted"`, // while it is reserved
		"the child works in", `"adopted"`,
		`{"code":"withdrawn","state":"closed"}`,
		`{"code":"admitted","row":"owner-dead"}`, `{"code":"reserved","reclaimed":"reserved"}`,
	} {
		_, after, found := strings.Cut(rest, want)
		if !found {
			t.Fatalf("%s is missing, or not in its place:\n%s", want, out)
		}
		rest = after
	}
}
