package fence

import (
	"time"

	"holdfast/pkg/procid"
	"holdfast/pkg/strictjson"
)

// State says how far the owner of a session directory got.
type State string

// The states.
const (
	Reserved    State = "reserved"     // kept for a child of the owner
	Fenced      State = "fenced"       // admitted, nothing taken yet
	Leased      State = "leased"       // has the native lease, or has said that it takes none
	StorageOpen State = "storage-open" // storage was opened
	Closed      State = "closed"       // ended cleanly
	CloseFailed State = "close-failed" // ended, and something of the end failed or is unknown
)

// Lease says what is known of the native lease of the owner.
type Lease string

// The values of a lease.
const (
	NeverHeld Lease = "never-held"
	Held      Lease = "held"
	Released  Lease = "released"
	Failed    Lease = "failed"
	Unknown   Lease = "unknown"
)

// Storage says how the owner's storage ended.
type Storage string

// The ends of storage.
const (
	StorageClosed  Storage = "closed"
	NeverOpened    Storage = "never-opened"
	StorageFailed  Storage = "failed"
	StorageUnknown Storage = "unknown"
)

// The ways an owner first came to a directory.
const (
	FromFresh    = "fresh"              // the admission made the directory
	FromExisting = "unarmed-existing"   // it was there, and nobody had fenced it
	maxCause     = 512                  // UTF-16 units
	envFailed    = "failed"             // the one value of envCleanup
	leaseAbsent  = "absent"             // a reservation's nativeLease
	leasePresent = "present-attributed" // a reservation's nativeLease
)

// The schemas of an owner claim.
const (
	SchemaLegacy  = 1 // another implementation's; read, judged, never written
	SchemaDurable = 2 // the durable-session layout below a profile
	SchemaPlain   = 3 // any other directory
)

// Claim is the owner claim of a session directory, the content of entwurf-owner.json.
type Claim struct {
	SchemaVersion      int             `json:"schemaVersion"`
	Resource           string          `json:"resource"` // the directory's real path
	Selected           Selected        `json:"selected"`
	State              State           `json:"state"`
	Owner              procid.Identity `json:"owner"`
	Generation         string          `json:"generation"` // 32 hex digits, new at every write
	FirstParticipation First           `json:"firstParticipation"`
	ReclaimedFrom      *Reclaimed      `json:"reclaimedFrom,omitzero"`
	Reservation        *Reservation    `json:"reservation,omitzero"`
	AdoptedFrom        *AdoptedRow     `json:"adoptedFrom,omitzero"`
	Lease              Lease           `json:"lease"`
	End                *End            `json:"end,omitzero"`
	WrittenAt          string          `json:"writtenAt"`
}

// Selected is the directory as its owner named it.
type Selected struct {
	N         string `json:"n"`                // the session
	Directory string `json:"directory"`        // absolute and clean, symlinks kept
	Profile   string `json:"profile,omitzero"` // schema 2 only
}

// First is when and how the directory came under the fence; kept for its life.
type First struct {
	At         string `json:"at"`
	Generation string `json:"generation"`
	From       string `json:"from"`
}

// Reclaimed is the row that an admission took over from a dead owner.
type Reclaimed struct {
	Generation   string          `json:"generation"`
	State        State           `json:"state"`
	Owner        procid.Identity `json:"owner"`
	LeaseOutcome Lease           `json:"leaseOutcome"`
}

// AdoptedRow is the reservation that an owner came by.
type AdoptedRow struct {
	Generation string          `json:"generation"`
	Owner      procid.Identity `json:"owner"`
}

// Reservation is what a parent keeps the directory for.
type Reservation struct {
	GardenID          string `json:"gardenId"`
	N                 string `json:"n"`
	CWD               string `json:"cwd"`
	Resource          string `json:"resource"`
	Profile           string `json:"profile,omitzero"`
	AttachIncarnation string `json:"attachIncarnation"`
	NativeLease       string `json:"nativeLease"` // absent or present-attributed
	From              Donor  `json:"from"`
}

// Donor is the native row that a reservation stands on, and that its withdrawal puts back.
type Donor struct {
	Generation string          `json:"generation"`
	State      State           `json:"state"`
	Owner      procid.Identity `json:"owner"`
	Lease      Lease           `json:"lease"`
	End        *End            `json:"end,omitzero"`
	Selected   Selected        `json:"selected"`
}

// End is the receipt of an owner.
type End struct {
	At         string           `json:"at"`
	Storage    Storage          `json:"storage"`
	Lease      Lease            `json:"lease"` // repeats the claim's
	EnvCleanup string           `json:"envCleanup,omitzero"`
	Cause      *strictjson.Text `json:"cause,omitzero"` // at most 512 UTF-16 units
}

// timeLayout is RFC 3339 in UTC with milliseconds, as every time is written.
const timeLayout = "2006-01-02T15:04:05.000Z"

// FormatTime renders a time as claims carry it.
func FormatTime(t time.Time) string { return t.UTC().Format(timeLayout) }

// attributed reports whether a native lease that is there can be this claim's dead owner's, for a request that selects
// directory.
func (c *Claim) attributed(directory string) bool {
	if c.State == Reserved {
		return c.Reservation.NativeLease == leasePresent && c.Selected.Directory == directory
	}
	return c.Lease == Held || c.Lease == Unknown
}

// reclaimed is the trace of this claim in the one that takes over.
func (c *Claim) reclaimed() *Reclaimed {
	return &Reclaimed{Generation: c.Generation, State: c.State, Owner: c.Owner, LeaseOutcome: c.Lease}
}
