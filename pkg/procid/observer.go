package procid

import "time"

// Observer judges many owners. It reads once what does not change while this process lives (the boot id, its own
// namespaces and their offset, whether /proc can be used), so that a verdict on an owner of this boot and pid namespace
// costs one kill and one read of /proc/PID/stat. Nothing about other processes is kept, nor the hostname, which may change.
//
// It relies on /proc staying mounted as it was; where it is replaced by that of another pid namespace in the life of an
// Observer, verdicts are about that one's processes. Any number of goroutines may use it at the same time.
type Observer struct{ view view }

// NewObserver looks at this process's own place among boots and namespaces. Where that cannot be known, the Observer's
// verdicts say so.
func NewObserver() *Observer { return &Observer{view: newView()} }

// Judge says whether the process on record lives; local is as for the function Judge.
func (o *Observer) Judge(rec Identity, local bool) Verdict {
	key := ParseKey(rec.StartKey)
	return decide(rec, key, o.view.observe(rec, key), local)
}

// Started is when the process of a start key started, by this moment's wall clock. It is known of processes of this boot, on Linux.
func (o *Observer) Started(startKey string) (at time.Time, known bool) {
	return o.view.started(ParseKey(startKey))
}
