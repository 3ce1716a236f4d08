package fence

import (
	"time"

	"holdfast/pkg/regfile"
)

// NativeLease is an entry beside a session directory that other software locks it with, a proper-lockfile directory
// typically.
type NativeLease struct {
	Path  string
	Kind  regfile.Kind
	Mtime time.Time
	stamp regfile.Stamp
}

// leasePaths are the names of the native lease: of the directory as selected, and of its real path.
func leasePaths(selected, resource string) []string {
	if selected == resource {
		return []string{selected + ".lock"}
	}
	return []string{selected + ".lock", resource + ".lock"}
}

// nativeLeases looks for the native lease. An error is never taken for absence.
func nativeLeases(selected, resource string) ([]NativeLease, error) {
	var found []NativeLease
	for _, path := range leasePaths(selected, resource) {
		lease, err := lookAtLease(path)
		if err != nil {
			return nil, err
		}
		if lease != nil && (len(found) == 0 || !lease.stamp.SameFile(found[0].stamp)) {
			found = append(found, *lease)
		}
	}
	return found, nil
}

// lookAtLease returns nil when nothing has the name.
func lookAtLease(path string) (*NativeLease, error) {
	st, err := regfile.Lstat(path)
	if regfile.IsAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &NativeLease{Path: path, Kind: st.Kind, Mtime: st.Mtime, stamp: st}, nil
}
