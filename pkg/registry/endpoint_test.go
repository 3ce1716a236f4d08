package registry

import (
	"strings"
	"testing"
)

func TestAnEndpointHasOneSpelling(t *testing.T) {
	for text, want := range map[string]Endpoint{
		"http://127.0.0.1:0":     {"127.0.0.1", 0},
		"http://127.0.0.1:1":     {"127.0.0.1", 1},
		"http://127.0.0.1:65535": {"127.0.0.1", 65535},
		"http://[::1]:8080":      {"::1", 8080},
	} {
		e, ok := ParseEndpoint(text)
		if !ok || e != want || e.String() != text {
			t.Errorf("%s: %+v, %v, %s", text, e, ok, e)
		}
	}
	for _, text := range []string{
		"", "http://", "http://127.0.0.1", "http://127.0.0.1:", "http://127.0.0.1:00", "http://127.0.0.1:01", "http://127.0.0.1:+1",
		"http://127.0.0.1:-0", "http://127.0.0.1:65536", "http://127.0.0.1:1e3", "http://127.0.0.1:0x1", "http://127.0.0.1:1 ", " http://127.0.0.1:1",
		"http://127.0.0.1:1/", "http://127.0.0.1:1#", "http://127.0.0.1:1\n", "http://127.1:1", "http://127.0.0.01:1", "http://[::1]", "http://[::1]:",
		"http://[0:0:0:0:0:0:0:1]:1", "http://[::1%lo]:1", "http://[::1]1", "http://::1:1", "HTTP://127.0.0.1:1", "https://127.0.0.1:1", "127.0.0.1:1",
		"http://localhost:1", "http://0.0.0.0:1", "http://127.0.0.1:" + strings.Repeat("9", 100),
	} {
		if e, ok := ParseEndpoint(text); ok {
			t.Errorf("%q is %+v", text, e)
		}
	}
}

func TestABoundEndpointAnswersARequestedOne(t *testing.T) {
	const four, six = "http://127.0.0.1:", "http://[::1]:"
	for _, c := range []struct {
		bound, requested string
		want             bool
	}{
		{four + "80", four + "80", true},
		{four + "80", four + "0", true},
		{six + "80", six + "0", true},
		{six + "80", six + "80", true},
		{four + "80", four + "81", false},
		{four + "80", six + "0", false},
		{six + "80", four + "80", false},
		{four + "0", four + "0", false},
		{four + "0", four + "80", false},
	} {
		bound, _ := ParseEndpoint(c.bound)
		requested, _ := ParseEndpoint(c.requested)
		if got := bound.Matches(requested); got != c.want {
			t.Errorf("%s for %s: %v", c.bound, c.requested, got)
		}
	}
}

func FuzzEndpoint(f *testing.F) {
	for _, text := range []string{"http://127.0.0.1:80", "http://[::1]:0", "http://127.0.0.1:080", "http://[::1]:65536"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, ok := ParseEndpoint(text)
		if ok && (e.String() != text || e.Port < 0 || e.Port > 65535) {
			t.Fatalf("%q is %+v, which is written %s", text, e, e)
		}
	})
}
