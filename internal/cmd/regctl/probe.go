package regctl

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/pkg/registry"
)

// probeView is what trying an endpoint showed.
type probeView struct {
	Answer    string `json:"answer"`             // listening, refused, occupied-by-other or no-answer
	Listeners []int  `json:"listeners,omitzero"` // pids that have the listening socket, as far as they can be seen
	Reason    string `json:"reason,omitzero"`
}

// probeTime is how long an endpoint may take to take a connection.
const probeTime = 2 * time.Second

// probeEndpoint connects and says nothing. That somebody listens does not mean that the service is healthy.
func probeEndpoint(row registry.Reservation) *probeView {
	e, _ := registry.ParseEndpoint(row.Endpoint)
	conn, err := net.DialTimeout("tcp", net.JoinHostPort(e.Host, strconv.Itoa(e.Port)), probeTime)
	switch {
	case errors.Is(err, unix.ECONNREFUSED):
		return &probeView{Answer: "refused"}
	case err != nil:
		return &probeView{Answer: "no-answer", Reason: err.Error()}
	}
	conn.Close()
	p := &probeView{Answer: "listening", Listeners: listeners(e)}
	if len(p.Listeners) > 0 && !slices.ContainsFunc(p.Listeners, func(pid int) bool { return belongsTo(pid, row.PID) }) {
		p.Answer = "occupied-by-other"
	}
	return p
}

// listeners are the pids that have the listening socket of an endpoint open.
func listeners(e registry.Endpoint) []int {
	table := "/proc/net/tcp"
	if e.Host == "::1" {
		table = "/proc/net/tcp6"
	}
	inode := listeningInode(table, e)
	if inode == "" {
		return nil
	}
	var pids []int
	names, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, fd := range names {
		if target, err := os.Readlink(fd); err != nil || target != "socket:["+inode+"]" {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(fd))))
		if err == nil && !slices.Contains(pids, pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// listeningInode is the inode of the socket in state LISTEN at the endpoint, or at every address with its port.
func listeningInode(table string, e registry.Endpoint) string {
	f, err := os.Open(table)
	if err != nil {
		return ""
	}
	defer f.Close()
	const local, state, inode, listen = 1, 3, 9, "0A"
	port := fmt.Sprintf("%04X", e.Port)
	any := ""
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) <= inode || fields[state] != listen {
			continue
		}
		address, p, _ := strings.Cut(fields[local], ":")
		switch {
		case p != port:
		case address == loopbackWord(e):
			return fields[inode]
		case strings.Trim(address, "0") == "":
			any = fields[inode]
		}
	}
	return any
}

// loopbackWord is an address as /proc/net writes it: words of 32 bits in the machine's order.
func loopbackWord(e registry.Endpoint) string {
	if e.Host == "::1" {
		return "000000000000000000000000" + strings.ToUpper(hex.EncodeToString([]byte{1, 0, 0, 0}))
	}
	return "0100007F"
}

// belongsTo reports whether a process is the owner or one that it started.
func belongsTo(pid, owner int) bool {
	for range 64 {
		if pid == owner {
			return true
		}
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil {
			return false
		}
		fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		if len(fields) < 2 {
			return false
		}
		if pid, err = strconv.Atoi(fields[1]); err != nil || pid <= 1 {
			return false
		}
	}
	return false
}
