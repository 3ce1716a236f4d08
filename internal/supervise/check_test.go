package supervise

import "testing"

// TestCheckIsMadeAgain: a process that was stopped and continued once more while it looked has to look once more, before
// the child, which one of the stops had met, is continued.
func TestCheckIsMadeAgain(t *testing.T) {
	looks, look := 0, make(chan struct{})
	hold := Hold{Check: func() { looks++; <-look }}
	var c check
	c.begin(hold, true)
	c.begin(hold, false)
	c.begin(hold, false)
	look <- struct{}{}
	<-c.over
	if c.end(hold) {
		t.Error("the look from before the last stop counts")
	}
	look <- struct{}{}
	<-c.over
	if !c.end(hold) || !c.waits || looks != 2 || c.over != nil {
		t.Errorf("after %d looks: %+v", looks, c)
	}
}
