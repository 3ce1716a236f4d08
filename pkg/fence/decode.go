package fence

import (
	"bytes"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"holdfast/pkg/procid"
	"holdfast/pkg/strictjson"
)

// maxPID is the largest pid that a kernel's pid_t can hold.
const maxPID = 1<<31 - 1

// Decode reads an owner claim. The error is a *strictjson.Error, or ErrSchemaNewer for a schema that this package does not
// know.
func Decode(b []byte) (*Claim, error) {
	var c Claim
	if err := strictjson.DecodeLoose(b, &c, "cause"); err != nil {
		if newer(b) {
			return nil, ErrSchemaNewer
		}
		return nil, err
	}
	if c.SchemaVersion > SchemaPlain {
		return nil, ErrSchemaNewer
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	if !sameMembers(b, c.Encode()) {
		return nil, strictjson.ShapeError("has a member that is null, empty or not of the expected form")
	}
	return &c, nil
}

// newer reports whether b is well-formed and of a schema to come, whose members may be others.
func newer(b []byte) bool {
	var v struct {
		SchemaVersion int `json:"schemaVersion"`
	}
	return strictjson.DecodeOpen(b, &v) == nil && v.SchemaVersion > SchemaPlain
}

// sameMembers reports whether both say the same, whatever the order and the white space: a member that decoding ignored, a
// null or an empty optional text, is a difference.
func sameMembers(b, encoded []byte) bool {
	if bytes.Equal(b, encoded) {
		return true
	}
	x, y := jsontext.Value(bytes.Clone(b)), jsontext.Value(encoded)
	loose := jsontext.AllowInvalidUTF8(true)
	return x.Canonicalize(loose) == nil && y.Canonicalize(loose) == nil && bytes.Equal(x, y)
}

// checker collects the first thing that is wrong.
type checker struct{ err *strictjson.Error }

func (k *checker) that(ok bool, format string, args ...any) {
	if !ok && k.err == nil {
		k.err = strictjson.ShapeError(format, args...)
	}
}

// check is what a claim must be, beyond its members' types.
func (c *Claim) check() error {
	k := &checker{}
	k.that(c.SchemaVersion >= SchemaLegacy && c.SchemaVersion <= SchemaPlain, "has schemaVersion %d, which is not 1, 2 or 3", c.SchemaVersion)
	k.that(path.IsAbs(c.Resource), "has a resource that is no absolute path")
	k.selection("selected", c.Selected, c.SchemaVersion)
	k.owner("owner", c.Owner, c.SchemaVersion)
	k.generation("generation", c.Generation)
	k.instant("firstParticipation.at", c.FirstParticipation.At)
	k.generation("firstParticipation.generation", c.FirstParticipation.Generation)
	k.that(oneOf(c.FirstParticipation.From, FromFresh, FromExisting), "has an unknown firstParticipation.from")
	k.row(c.SchemaVersion, c.State, c.Lease, c.End)
	k.provenance(c)
	k.instant("writtenAt", c.WrittenAt)
	if k.err != nil {
		return k.err
	}
	return nil
}

func (k *checker) provenance(c *Claim) {
	if r := c.ReclaimedFrom; r != nil {
		k.generation("reclaimedFrom.generation", r.Generation)
		k.that(oneOf(r.State, Reserved, Fenced, Leased, StorageOpen, CloseFailed), "has a reclaimedFrom.state that nobody reclaims")
		k.owner("reclaimedFrom.owner", r.Owner, c.SchemaVersion)
		k.that(oneOf(r.LeaseOutcome, NeverHeld, Held, Released, Failed, Unknown), "has an unknown reclaimedFrom.leaseOutcome")
	}
	if a := c.AdoptedFrom; a != nil {
		k.that(c.SchemaVersion != SchemaLegacy, "has an adoptedFrom, which schema 1 does not have")
		k.that(c.State != Reserved, "has an adoptedFrom while it is reserved")
		k.generation("adoptedFrom.generation", a.Generation)
		k.owner("adoptedFrom.owner", a.Owner, c.SchemaVersion)
	}
	k.that(c.State != Reserved || c.SchemaVersion != SchemaLegacy, "is reserved, which schema 1 does not have")
	k.that((c.Reservation != nil) == (c.State == Reserved), "has a reservation without being reserved, or the reverse")
	if c.Reservation != nil {
		k.reservation(c, c.Reservation)
	}
}

func (k *checker) reservation(c *Claim, r *Reservation) {
	k.that(ValidGardenID(r.GardenID), "has a reservation.gardenId that is none")
	k.that(r.N == c.Selected.N, "has a reservation of another session")
	k.that(path.IsAbs(r.CWD), "has a reservation.cwd that is no absolute path")
	k.that(r.Resource == c.Resource, "has a reservation of another resource")
	k.that(r.Profile == c.Selected.Profile, "has a reservation of another profile")
	k.that(r.AttachIncarnation != "", "has an empty reservation.attachIncarnation")
	k.that(oneOf(r.NativeLease, leaseAbsent, leasePresent), "has an unknown reservation.nativeLease")
	d := r.From
	k.generation("reservation.from.generation", d.Generation)
	k.that(d.State != Reserved, "has a reservation that comes from a reservation")
	k.owner("reservation.from.owner", d.Owner, c.SchemaVersion)
	k.row(c.SchemaVersion, d.State, d.Lease, d.End)
	k.that(d.Selected == c.Selected, "has a reservation.from of another selection")
	k.that(r.NativeLease != leasePresent || d.Lease == Held || d.Lease == Unknown, "attributes a native lease to a donor that had none")
}

func (k *checker) selection(name string, s Selected, schema int) {
	k.that(s.N != "", "has an empty %s.n", name)
	k.that(path.IsAbs(s.Directory), "has a %s.directory that is no absolute path", name)
	if schema == SchemaDurable {
		k.that(path.IsAbs(s.Profile), "has a %s.profile that is no absolute path", name)
		k.that(durable(s), "has a %s.directory outside the durable-session layout of its profile", name)
	} else {
		k.that(s.Profile == "", "has a %s.profile, which schema %d does not have", name, schema)
	}
}

func (k *checker) owner(name string, o procid.Identity, schema int) {
	least := 2
	if schema == SchemaPlain {
		least = 1
	}
	k.that(o.PID >= least && o.PID <= maxPID, "has a %s.pid that no owner has", name)
	k.that(o.StartKey != "", "has an empty %s.startKey", name)
	k.that(o.Hostname != "", "has an empty %s.hostname", name)
}

// row checks a state against its lease and end.
func (k *checker) row(schema int, state State, lease Lease, end *End) {
	k.that(oneOf(state, Reserved, Fenced, Leased, StorageOpen, Closed, CloseFailed), "has an unknown state")
	k.that(oneOf(lease, NeverHeld, Held, Released, Failed, Unknown), "has an unknown lease")
	if end != nil {
		k.instant("end.at", end.At)
		k.that(oneOf(end.Storage, StorageClosed, NeverOpened, StorageFailed, StorageUnknown), "has an unknown end.storage")
		k.that(end.Lease == lease, "has an end.lease that is not its lease")
		k.that(end.EnvCleanup == "" || end.EnvCleanup == envFailed, "has an unknown end.envCleanup")
		k.that(end.EnvCleanup == "" || end.Storage != NeverOpened, "has an end.envCleanup though storage was never opened")
		k.that(end.Cause == nil || end.Cause.Units() <= maxCause, "has an end.cause of more than %d UTF-16 units", maxCause)
	}
	k.that(tabled(schema, state, lease, end), "says %s with lease %s%s, which cannot be", state, lease, endText(end))
}

func endText(end *End) string {
	if end == nil {
		return " and no end"
	}
	return " and storage " + string(end.Storage)
}

func (k *checker) generation(name, g string) {
	k.that(ValidGeneration(g), "has a %s that is not 32 lower-case hex digits", name)
}

func (k *checker) instant(name, text string) {
	_, err := time.Parse(time.RFC3339Nano, text)
	k.that(err == nil, "has a %s that is no RFC 3339 time", name)
}

func oneOf[T comparable](v T, words ...T) bool { return slices.Contains(words, v) }

// ValidGeneration reports whether g can be a generation: 32 lower-case hex digits.
func ValidGeneration(g string) bool {
	return len(g) == 32 && strings.Trim(g, "0123456789abcdef") == ""
}

// ValidGardenID reports whether id is a garden id, YYYYMMDDTHHMMSS-xxxxxx with six hex digits at the end.
func ValidGardenID(id string) bool {
	if len(id) != 22 || id[8] != 'T' || id[15] != '-' {
		return false
	}
	return strings.Trim(id[:8]+id[9:15], "0123456789") == "" && strings.Trim(id[16:], "0123456789abcdef") == ""
}

// durable reports whether a selection lies where the durable-session layout puts it: directory is
// profile/experimental/durable-sessions/H/n, for any name H.
func durable(s Selected) bool {
	root := path.Join(s.Profile, "experimental", "durable-sessions") + "/"
	h, n, found := strings.Cut(strings.TrimPrefix(s.Directory, root), "/")
	return strings.HasPrefix(s.Directory, root) && found && h != "" && n == s.N &&
		path.Join(root, h, n) == s.Directory && path.Join(root, h) != path.Clean(root)
}
