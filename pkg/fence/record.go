package fence

import (
	"path/filepath"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"holdfast/pkg/regfile"
	"holdfast/pkg/strictjson"
)

// Record is what a garden's record says of a citizen: which session it is, where it works, and its incarnation. Members that
// this package does not know are kept.
type Record struct {
	GardenID          string
	NativeSessionID   string
	AttachIncarnation string
	CWD               string

	members strictjson.Object
}

// DecodeRecord reads a record. The error is a *strictjson.Error.
func DecodeRecord(b []byte) (*Record, error) {
	o, err := strictjson.Parse(b)
	if err != nil {
		return nil, err
	}
	r := &Record{members: o}
	for _, f := range []struct {
		name string
		into *string
	}{{"gardenId", &r.GardenID}, {"nativeSessionId", &r.NativeSessionID}, {"attachIncarnation", &r.AttachIncarnation}, {"cwd", &r.CWD}} {
		if *f.into, err = o.String(f.name); err != nil {
			return nil, err
		}
	}
	switch {
	case !ValidGardenID(r.GardenID):
		return nil, strictjson.ShapeError("has a gardenId that is none")
	case r.NativeSessionID == "" || r.AttachIncarnation == "":
		return nil, strictjson.ShapeError("has an empty nativeSessionId or attachIncarnation")
	case !filepath.IsAbs(r.CWD):
		return nil, strictjson.ShapeError("has a cwd that is no absolute path")
	}
	return r, nil
}

// Encode returns the file's bytes: what was read, with the values as they are now.
func (r *Record) Encode() []byte {
	o := r.members.Clone()
	o.Set("gardenId", r.GardenID)
	o.Set("nativeSessionId", r.NativeSessionID)
	o.Set("attachIncarnation", r.AttachIncarnation)
	o.Set("cwd", r.CWD)
	return o.Indented()
}

// Location says which incarnation of a citizen owns which directory.
type Location struct {
	SchemaVersion     int    `json:"schemaVersion"` // 1
	GardenID          string `json:"gardenId"`
	AttachIncarnation string `json:"attachIncarnation"`
	NativeDirectory   string `json:"nativeDirectory"` // R
	OwnerPID          int    `json:"ownerPid"`
	OwnerStartKey     string `json:"ownerStartKey"`
	WrittenAt         string `json:"writtenAt"`
}

func (l *Location) encode() []byte {
	b, err := json.Marshal(l, jsontext.WithIndent("  "))
	if err != nil {
		panic(err) // nothing in a Location can fail to encode
	}
	return append(b, '\n')
}

// DecodeLocation reads a location. The error is a *strictjson.Error.
func DecodeLocation(b []byte) (*Location, error) {
	var l Location
	if err := strictjson.Decode(b, &l); err != nil {
		return nil, err
	}
	k := &checker{}
	k.that(l.SchemaVersion == 1, "has schemaVersion %d, which is not 1", l.SchemaVersion)
	k.that(ValidGardenID(l.GardenID), "has a gardenId that is none")
	k.that(l.AttachIncarnation != "", "has an empty attachIncarnation")
	k.that(filepath.IsAbs(l.NativeDirectory), "has a nativeDirectory that is no absolute path")
	k.that(l.OwnerPID >= 1 && l.OwnerPID <= maxPID, "has an ownerPid that no owner has")
	k.that(l.OwnerStartKey != "", "has an empty ownerStartKey")
	k.instant("writtenAt", l.WrittenAt)
	if k.err != nil {
		return nil, k.err
	}
	return &l, nil
}

// binding is the pair of a garden's record and location.
type binding struct {
	Record   *Record
	Location *Location
}

// bound reads the pair, inside the arm lock. Errors: a *Refusal of code profile-record-unbound when anything is missing,
// unreadable or another garden's, binding-mismatch when the two are of different incarnations; *regfile.Error.
func (g Garden) bound() (binding, error) {
	record, err := read(g.recordPath(), DecodeRecord)
	if err != nil {
		return binding{}, err
	}
	location, err := read(g.locationPath(), DecodeLocation)
	if err != nil {
		return binding{}, err
	}
	switch {
	case record.GardenID != g.ID:
		return binding{}, unbound(g.recordPath(), "names another garden, "+record.GardenID)
	case location.GardenID != g.ID:
		return binding{}, unbound(g.locationPath(), "names another garden, "+location.GardenID)
	case record.AttachIncarnation != location.AttachIncarnation:
		return binding{}, &Refusal{Code: CodeBindingMismatch, Path: g.locationPath(),
			How: "the record and the location of garden " + g.ID + " are of different incarnations: an enrolment was cut off; enrol again"}
	}
	return binding{Record: record, Location: location}, nil
}

// read reads one file of a garden that has to be there and to be readable.
func read[T any](path string, decode func([]byte) (*T, error)) (*T, error) {
	snap, err := get(path)
	if err != nil {
		return nil, unboundBy(path, err)
	}
	if snap == nil {
		return nil, unbound(path, "is missing: nobody has enrolled")
	}
	v, err := decode(snap.Bytes)
	if err != nil {
		return nil, unboundBy(path, err)
	}
	return v, nil
}

func unbound(path, how string) *Refusal {
	return &Refusal{Code: CodeRecordUnbound, Path: path, How: regfile.Printable(path) + " " + how}
}

func unboundBy(path string, err error) *Refusal {
	return &Refusal{Code: CodeRecordUnbound, Path: path, How: regfile.Printable(path) + " cannot be used: " + err.Error(), Err: err}
}
