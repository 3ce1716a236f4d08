package doctor

import (
	"fmt"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"holdfast/pkg/finding"
	"holdfast/pkg/regfile"
)

// clockSlack is how far a time may be off without a meaning.
const clockSlack = 5 * time.Second

// startKey is the start key of a process in the text of a claim or a claim file.
var startKey = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`linux:[0-9]+@[0-9a-f-]{36}/[0-9]+`) })

// clock compares the wall clock with the times of the files of a place. A file from the future shows that the clock was set back, or
// another's is ahead; one that is older than a process that it names, that the clock was set forward since: every lease grew older
// by that.
func clock(x *examination, p Place) []finding.Finding {
	looked := 0
	newest, ahead, set := "", time.Duration(0), time.Duration(0)
	older := ""
	for _, path := range x.protocolPaths(p) {
		if !x.touch(path) {
			continue
		}
		st, err := regfile.Lstat(path)
		if err != nil || st.Kind != regfile.Regular {
			continue
		}
		looked++
		if d := time.Until(st.Mtime); d > ahead {
			newest, ahead = path, d
		}
		if p.Where == StateHome {
			continue // nothing in there expires
		}
		if d := x.setSince(path, st.Mtime); d > set {
			older, set = path, d
		}
	}
	warn := func(condition, path, format string, d time.Duration) finding.Finding {
		return finding.Finding{Severity: finding.Warn, Condition: condition, Path: path, Subject: path, Detail: fmt.Sprintf(format, d.Round(time.Second))}
	}
	var found []finding.Finding
	if ahead > clockSlack {
		found = append(found, warn("clock-behind", newest, "it was written %s in the future: this clock is behind, or another's was ahead", ahead))
	}
	if set > clockSlack {
		found = append(found, warn("clock-set", older, "it is %s older than a process of this boot that it names: the clock was set forward since, and what expires has expired too early", set))
	}
	if looked > 0 && len(found) == 0 {
		found = append(found, finding.Finding{Severity: finding.Pass, Condition: "clock", Path: p.Dir, Subject: p.Dir, Detail: "nothing here comes from the future, or is older than a process that it names"})
	}
	return found
}

// setSince is how much older a file is than the youngest process that it names, by the present clock.
func (x *examination) setSince(path string, written time.Time) (most time.Duration) {
	d, err := regfile.OpenDir(filepath.Dir(path))
	if err != nil {
		return 0 // what is wrong with it is another check's to say
	}
	defer d.Close()
	snap, err := d.Read(filepath.Base(path), regfile.DefaultLimit)
	if err != nil {
		return 0
	}
	for _, key := range startKey().FindAllString(string(snap.Bytes), -1) {
		if at, known := x.self.Started(key); known {
			most = max(most, at.Sub(written))
		}
	}
	return most
}
