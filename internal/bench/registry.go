package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/pkg/procid"
	"holdfast/pkg/registry"
)

// inspectRoot compares a whole process of regctl inspect with flock's.
func inspectRoot() {
	dir := scratch("")
	defer os.RemoveAll(dir)
	f := newFullRegistry(dir, 1)
	againstFlock("regctl inspect / flock -n FILE true", "<= 1.6", dir, "bin/regctl", "inspect", "--state-home", f.home, "--root", f.root(0))
}

// listFull compares listing and validating a full registry, roots and all, with jq's reading of the one file of rows.
func listFull(parent string) {
	const what = "regctl list of 4096 services / jq length roots.json"
	jq, err := exec.LookPath("jq")
	if parent == "" || err != nil {
		fmt.Printf("%-52s there is no tmpfs or no jq here\n", what)
		return
	}
	dir := scratch(parent)
	defer os.RemoveAll(dir)
	f := newFullRegistry(dir, registry.MaxEntries)
	var ours, theirs, rows []time.Duration
	for i := range 16 {
		a := timed("bin/regctl", "list", "--state-home", f.home)
		b := timed(jq, "length", filepath.Join(f.home, "registry", "roots.json"))
		c := f.readRows()
		if i > 0 {
			ours, theirs, rows = append(ours, a), append(theirs, b), append(rows, c)
		}
	}
	row(what, ratioOf(ours, theirs), "<= 3", fmt.Sprintf("medians %s and %s", median(ours), median(theirs)))
	row("  its rows alone, read and validated in process / jq", ratioOf(rows, theirs), "<= 3", fmt.Sprintf("median %s", median(rows)))
}

// acquireGrowth prints what an acquire and its release cost as the registry grows, and how that grows against n log n.
func acquireGrowth(parent string) {
	if parent == "" {
		fmt.Printf("%-52s there is no tmpfs here\n", "regctl acquire")
		return
	}
	nLogN := func(n int) float64 { return float64(n) * math.Log2(float64(n)) }
	var first time.Duration
	sizes := []int{16, 256, registry.MaxEntries - 1}
	for _, n := range sizes {
		dir := scratch(parent)
		f := newFullRegistry(dir, n)
		cost := f.acquire()
		os.RemoveAll(dir)
		what := fmt.Sprintf("acquire+release with %d rows", n)
		if first == 0 {
			first = cost
			fmt.Printf("%-52s %s\n", what, cost)
			continue
		}
		growth := float64(cost) / float64(first)
		row(what+" / with 16", growth, fmt.Sprintf("< %.0f", nLogN(n)/nLogN(sizes[0])), fmt.Sprintf("%s; n log n grows so much", cost))
	}
}

// fullRegistry is a state home with many services, all of this process.
type fullRegistry struct {
	dir, home string
	self      procid.Identity
}

func newFullRegistry(dir string, n int) *fullRegistry {
	self, err := procid.Self()
	must(err)
	f := &fullRegistry{dir: dir, home: filepath.Join(dir, "home"), self: self}
	for _, d := range []string{"", "registry", "roots", "stage", "receipts"} {
		must(os.Mkdir(filepath.Join(f.home, d), 0o700))
	}
	rows := make([]string, n)
	for i := range rows {
		rows[i] = "{" + f.service(i) + "}"
	}
	f.write("registry/format.json", `"schema":"holdfast-registry-format/1","stateHome":%q`, f.home)
	f.write("registry/roots.json", `"schema":"holdfast-registry/1","entries":[%s]`, strings.Join(rows, ","))
	return f
}

func (f *fullRegistry) root(i int) string {
	return filepath.Join(f.dir, fmt.Sprintf("roots-%d", i/64), fmt.Sprint(i))
}

// service makes the files of one service and returns its row, without the braces.
func (f *fullRegistry) service(i int) string {
	root := f.root(i)
	must(os.MkdirAll(root, 0o700))
	dir := "roots/" + registry.RootID(root) + "/"
	must(os.Mkdir(filepath.Join(f.home, dir), 0o700))
	uuid := func(kind int) string { return fmt.Sprintf("%08x-0000-4000-8000-%012d", kind, i) }
	owner := fmt.Sprintf(`"pid":%d,"startKey":%q,"host":%q`, f.self.PID, f.self.StartKey, f.self.Hostname)
	endpoint := fmt.Sprintf("http://127.0.0.1:%d", 10000+i)
	sum := sha256.Sum256([]byte(f.write(dir+"config.json", `"schema":"holdfast-service-config/1","endpoint":%q,"policyIdentity":"%064d"`, endpoint, 0)))
	config := hex.EncodeToString(sum[:])
	f.write(dir+"format.json", `"schema":"holdfast-service-format/1","root":%q,"stateHome":%q,"configIdentity":%q`, root, f.home, config)
	row := fmt.Sprintf(`"root":%q,"stateHome":%q,"configIdentity":%q,"endpoint":%q,"epoch":%q,%s,"ownerToken":%q`,
		root, f.home, config, endpoint, uuid(1), owner, uuid(2))
	var st unix.Stat_t
	must(unix.Stat(root, &st))
	place := fmt.Sprintf("%d:%d", st.Dev, st.Ino)
	f.write(dir+"registration.json", `"schema":"holdfast-service-registration/1",%s,"checkoutToken":%q,"rootStamp":%q,"phase":"idle"`, row, uuid(3), place)
	f.write(dir+"owner.lock", `"schema":"holdfast-service-owner-lock/1","epoch":%q,"token":%q,%s`, uuid(1), uuid(2), owner)
	f.write(dir+"local-capability.json", `"schema":"holdfast-service-local-capability/1","epoch":%q,"capability":%q`, uuid(1), strings.Repeat("A", 43))
	f.write(dir+"checkout.lock", `"token":%q,%s,"since":"2026-01-02T03:04:05.678Z"`, uuid(3), owner)
	return row
}

// write makes a file of one object and returns its text.
func (f *fullRegistry) write(name, format string, args ...any) string {
	text := "{" + fmt.Sprintf(format, args...) + "}\n"
	must(os.WriteFile(filepath.Join(f.home, name), []byte(text), 0o600))
	return text
}

func (f *fullRegistry) readRows() time.Duration {
	started := time.Now()
	h, err := registry.Open(f.home, registry.Options{})
	must(err)
	defer h.Close()
	_, err = h.Registry()
	must(err)
	return time.Since(started).Round(time.Microsecond)
}

// acquire is the median cost of an acquire and its release.
func (f *fullRegistry) acquire() time.Duration {
	root := filepath.Join(f.dir, "new")
	must(os.Mkdir(root, 0o700))
	h, err := registry.Open(f.home, registry.Options{})
	must(err)
	defer h.Close()
	var costs []time.Duration
	for range 12 {
		started := time.Now()
		a, err := h.Acquire(context.Background(), registry.Acquire{Root: root, Requested: "http://127.0.0.1:9999", Owner: f.self})
		must(err)
		_, err = h.Release(context.Background(), a.Receipt)
		must(err)
		costs = append(costs, time.Since(started).Round(time.Microsecond))
	}
	return median(costs)
}
