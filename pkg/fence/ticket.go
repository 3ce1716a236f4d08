package fence

import (
	"encoding/hex"
	"errors"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"holdfast/pkg/atomicfile"
	"holdfast/pkg/regfile"
	"holdfast/pkg/strictjson"
)

// Ticket is what an owner keeps of its claim: the generation it wrote last. It lies outside the session directory. Pending
// is the generation it is about to write: recorded and synced before the claim, so that a claim found at it is this ticket's
// whatever was killed in between.
type Ticket struct {
	Resource             string `json:"resource"`
	Generation           string `json:"generation,omitzero"` // none until the admission is written
	Pending              string `json:"pending,omitzero"`
	StorageOpenAttempted bool   `json:"storageOpenAttempted"`
}

// names reports whether a claim at this generation is the ticket's.
func (t Ticket) names(generation string) bool {
	return generation != "" && (generation == t.Generation || generation == t.Pending)
}

// last is the generation to name in a refusal.
func (t Ticket) last() string {
	if t.Pending != "" {
		return t.Pending
	}
	return t.Generation
}

// ticketLimit bounds a ticket, in bytes: one path and two generations.
const ticketLimit = 64 << 10

// ticketFile is a ticket on disk.
type ticketFile struct {
	dir  *regfile.Dir
	name string
	pid  int
}

func openTicketDir(path string, pid int) (*ticketFile, error) {
	dir, err := regfile.OpenDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	return &ticketFile{dir: dir, name: filepath.Base(path), pid: pid}, nil
}

func (t *ticketFile) close() { t.dir.Close() }

func (t *ticketFile) path() string { return t.dir.Join(t.name) }

// inside reports whether the ticket would lie in the session directory.
func (t *ticketFile) inside(resource string) bool {
	real, err := filepath.EvalSymlinks(t.dir.Path())
	if err == nil {
		real, err = filepath.Abs(real)
	}
	return err != nil || real == resource || strings.HasPrefix(real, strings.TrimSuffix(resource, "/")+"/")
}

// create makes a new ticket and returns the stamp of its file. The error is a *Refusal of code ticket-exists when there is
// one.
func (t *ticketFile) create(content Ticket) (regfile.Stamp, error) {
	err := atomicfile.Create(t.dir, t.stage(), t.name, encodeTicket(content), claimMode)
	if errors.Is(err, fs.ErrExist) {
		return regfile.Stamp{}, &Refusal{Code: CodeTicketExists, Path: t.path()}
	}
	if err != nil {
		return regfile.Stamp{}, err
	}
	return t.dir.Lstat(t.name)
}

// read returns the ticket and the stamp of its file. Errors: *regfile.Error, or a *Refusal of code corrupt.
func (t *ticketFile) read() (Ticket, regfile.Stamp, error) {
	snap, err := t.dir.ReadOwned(t.name, ticketLimit)
	if err != nil {
		return Ticket{}, regfile.Stamp{}, err
	}
	content, err := DecodeTicket(snap.Bytes)
	if err != nil {
		return Ticket{}, regfile.Stamp{}, &Refusal{Code: CodeCorrupt, Path: t.path(), Fingerprint: snap.Fingerprint(), Err: err}
	}
	return content, snap.Stamp, nil
}

// replace publishes a ticket in the place of the one that stamp is of; its content is durable before it gets the name.
func (t *ticketFile) replace(content Ticket, stamp regfile.Stamp) error {
	return atomicfile.Replace(t.dir, t.stage(), t.name, encodeTicket(content), stamp)
}

// settle makes the pending generation of content, which the ticket has, the ticket's own, and returns what went wrong, as
// sentences: the claim is a fact by now, and a claim found at the pending generation is the ticket's as well.
func (t *ticketFile) settle(content Ticket, stamp regfile.Stamp) []string {
	content.Generation, content.Pending = content.Pending, ""
	if err := t.replace(content, stamp); err != nil {
		return []string{"the ticket still says pending: " + err.Error()}
	}
	return nil
}

// remove takes a ticket back whose admission was not written.
func (t *ticketFile) remove() error { return atomicfile.Remove(t.dir, t.name) }

func (t *ticketFile) stage() string { return stageName(t.name, t.pid) }

// stageName is a temporary name that no other call uses: "<name>.tmp-<pid>-<12 hex digits>".
func stageName(name string, pid int) string {
	id := uuid.New()
	return name + ".tmp-" + strconv.Itoa(pid) + "-" + hex.EncodeToString(id[:6])
}

func encodeTicket(t Ticket) []byte {
	b, err := strictjson.Line(t)
	if err != nil {
		panic(err) // nothing in a Ticket can fail to encode
	}
	return b
}

// DecodeTicket reads a ticket. The error is a *strictjson.Error.
func DecodeTicket(b []byte) (Ticket, error) {
	var t Ticket
	if err := strictjson.Decode(b, &t); err != nil {
		return Ticket{}, err
	}
	switch {
	case !filepath.IsAbs(t.Resource):
		return Ticket{}, strictjson.ShapeError("has a resource that is no absolute path")
	case t.Generation == "" && t.Pending == "":
		return Ticket{}, strictjson.ShapeError("names no generation")
	case t.Generation != "" && !ValidGeneration(t.Generation), t.Pending != "" && !ValidGeneration(t.Pending):
		return Ticket{}, strictjson.ShapeError("has a generation that is not 32 lower-case hex digits")
	case !sameMembers(b, encodeTicket(t)):
		return Ticket{}, strictjson.ShapeError("lacks storageOpenAttempted, or has a member that is null or empty")
	}
	return t, nil
}
