package registry

import (
	"strconv"
	"strings"
)

// Endpoint is a loopback endpoint: http://127.0.0.1:PORT or http://[::1]:PORT. Port 0 asks for any.
type Endpoint struct {
	Host string // 127.0.0.1 or ::1
	Port int
}

// ParseEndpoint reads an endpoint, which has exactly one spelling.
func ParseEndpoint(s string) (Endpoint, bool) {
	for _, host := range []string{"127.0.0.1", "::1"} {
		port, ok := strings.CutPrefix(s, Endpoint{Host: host}.prefix())
		if !ok {
			continue
		}
		n, err := strconv.Atoi(port)
		if err != nil || n < 0 || n > 65535 || strconv.Itoa(n) != port {
			return Endpoint{}, false
		}
		return Endpoint{host, n}, true
	}
	return Endpoint{}, false
}

func (e Endpoint) prefix() string {
	if e.Host == "::1" {
		return "http://[::1]:"
	}
	return "http://" + e.Host + ":"
}

func (e Endpoint) String() string { return e.prefix() + strconv.Itoa(e.Port) }

// Matches reports whether a bound endpoint answers a requested one: it is the same, or the request left the port open.
func (e Endpoint) Matches(requested Endpoint) bool {
	return e.Port != 0 && e.Host == requested.Host && (requested.Port == 0 || requested.Port == e.Port)
}
