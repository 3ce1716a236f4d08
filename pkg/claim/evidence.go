package claim

import (
	"strings"
	"time"

	"holdfast/pkg/procid"
	"holdfast/pkg/strictjson"
)

// timeLayout is RFC 3339 in UTC with milliseconds.
const timeLayout = "2006-01-02T15:04:05.000Z"

// limit bounds what is read of a claim, in bytes: evidence is one short line.
const limit = 64 << 10

// Evidence is what the creator of a claim wrote into it, for an operator who finds it later.
type Evidence struct {
	Token      string `json:"token"` // names this claim to Clear
	Tool       string `json:"tool"`
	Op         string `json:"op"`
	Root       string `json:"root,omitzero"` // what the operation is about, where the claim serves several things
	PID        int    `json:"pid"`
	StartKey   string `json:"startKey"` // empty where none could be made
	Hostname   string `json:"hostname"`
	EnteredAt  string `json:"enteredAt"`
	Dev        uint64 `json:"dev"`        // st_dev of the claim, as its creator saw it
	KernelLock bool   `json:"kernelLock"` // whether the creator held its kernel lock
}

func (e Evidence) identity() procid.Identity {
	return procid.Identity{PID: e.PID, StartKey: e.StartKey, Hostname: e.Hostname}
}

// parseEvidence reads a claim's content. A claim of another program has no evidence, but its single word may serve as
// its token.
func parseEvidence(content []byte) (*Evidence, string) {
	var e Evidence
	if err := strictjson.Decode(content, &e); err == nil && e.Token != "" {
		return &e, e.Token
	}
	word := strings.TrimSpace(string(content))
	if len(word) > 128 || strings.ContainsFunc(word, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, ""
	}
	return nil, word
}

func enteredAt(now time.Time) string { return now.UTC().Format(timeLayout) }
