package procid

import (
	"testing"
	"time"
)

func TestWhenAProcessStarted(t *testing.T) {
	t.Parallel()
	self, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	o := NewObserver()
	at, known := o.Started(self.StartKey)
	if age := time.Since(at); !known || age < 0 || age > time.Hour {
		t.Errorf("this process started at %v: %v", at, known)
	}
	key := ParseKey(self.StartKey)
	late := key
	late.Ticks = maxTicks + 1
	key.Ticks += 100 * ticksPerSecond // a system that has just booted has no such past
	if after, known := o.Started(key.String()); !known || after.Sub(at).Round(time.Second) != 100*time.Second {
		t.Errorf("a process that started %v later: %v", after.Sub(at), known)
	}
	other := key
	other.Boot = "00000000-0000-4000-8000-000000000000"
	weak := key
	weak.Boot = weakBoot
	for _, text := range []string{other.String(), weak.String(), late.String(), "linux:5", "ps:now", "plan9:1", ""} {
		if at, known := o.Started(text); known {
			t.Errorf("%q started at %v", text, at)
		}
	}
}
