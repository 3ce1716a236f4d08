package registry

import (
	"crypto/rand"
	"os"
	"slices"

	"holdfast/pkg/regfile"
)

// The files of the registry and of a root.
const (
	formatFile       = "format.json"
	rootsName        = "roots.json"
	lockFile         = "registry.lock"
	configName       = "config.json"
	registrationFile = "registration.json"
	ownerLockFile    = "owner.lock"
	capabilityName   = "local-capability.json"
	checkoutName     = "checkout.lock"
	hostConfigFile   = "host-config.json"

	fileMode = 0o600
)

// registryNames is the closed set of names in registry/.
var registryNames = []string{formatFile, rootsName, lockFile}

// rootNames is the closed set of names in roots/<id>/. The last ones are the service's own and only tolerated.
var rootNames = []string{
	formatFile, configName, registrationFile, ownerLockFile, capabilityName, checkoutName, hostConfigFile,
	"access-config.json", "access.json", historyName,
}

// historyName is the one directory among them.
const historyName = "history"

// Snapshot is a file at one moment: its bytes and its stamp. That of the capability has no bytes and no identity.
type Snapshot struct {
	Bytes    []byte
	Identity string // SHA-256 of the bytes, hex; empty for the capability
	Stamp    Stamp
}

// Stamp is what tells a file from every other and from itself at another time, within one boot.
type Stamp struct {
	Dev     uint64 `json:"dev"`
	Ino     uint64 `json:"ino"`
	Size    int64  `json:"size"`
	MtimeNs int64  `json:"mtimeNs"`
	CtimeNs int64  `json:"ctimeNs"`
}

func stampOf(st regfile.Stamp) Stamp {
	return Stamp{Dev: st.Dev, Ino: st.Ino, Size: st.Size, MtimeNs: st.Mtime.UnixNano(), CtimeNs: st.Ctime.UnixNano()}
}

// same reports whether two snapshots are of one file that did not change; nil is none.
func (s *Snapshot) same(t *Snapshot) bool {
	if s == nil || t == nil {
		return s == nil && t == nil
	}
	return s.Stamp == t.Stamp && s.Identity == t.Identity
}

// readFile reads a file of ours; nil when it is missing. Errors are *regfile.Error, or a *Refusal of code uncertain.
func readFile(d *regfile.Dir, name string, limit int64) (*Snapshot, error) {
	snap, err := d.Read(name, limit)
	if regfile.IsAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := ownFile(d.Join(name), snap.Stamp); err != nil {
		return nil, err
	}
	s := &Snapshot{Bytes: snap.Bytes, Stamp: stampOf(snap.Stamp)}
	if name != capabilityName {
		s.Identity = identityOf(snap.Bytes)
	}
	return s, nil
}

// ownFile refuses a file that is not the caller's own, or that others may read or write.
func ownFile(path string, st regfile.Stamp) error {
	switch {
	case st.UID != uint32(os.Geteuid()):
		return &regfile.Error{Code: regfile.CodeForeignOwner, Path: path, Kind: st.Kind, UID: st.UID, Stamp: &st}
	case st.Perm() != fileMode:
		return uncertain(path, "has mode %04o, and must have 0600", st.Perm())
	}
	return nil
}

// closedSet lists a directory, and refuses any name that does not belong there.
func closedSet(d *regfile.Dir, names []string) (present []string, err error) {
	entries, err := d.Entries()
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name := e.Name()
		switch {
		case !slices.Contains(names, name):
			return nil, uncertain(d.Join(name), "does not belong in this closed directory")
		case name == historyName:
			if err := ownDirectory(d.Join(name)); err != nil {
				return nil, err
			}
		case !e.Type().IsRegular():
			st, err := d.Lstat(name)
			if err != nil {
				return nil, err
			}
			return nil, &regfile.Error{Code: regfile.CodeNotRegular, Path: d.Join(name), Kind: st.Kind, Stamp: &st}
		}
		present = append(present, name)
	}
	return present, nil
}

func randomBytes(b []byte) error {
	_, err := rand.Read(b)
	return err
}
