package regfile

import (
	"crypto/sha256"
	"encoding/hex"
)

// DefaultLimit is the largest state file that is read unless the caller says otherwise, in bytes.
const DefaultLimit = 1 << 20

// Snapshot is a file's whole content at one moment, and its metadata.
type Snapshot struct {
	Bytes []byte
	Stamp Stamp
}

// Fingerprint is the content's SHA-256, as "sha256:<64 hex digits>".
func (s *Snapshot) Fingerprint() string { return Fingerprint(s.Bytes) }

// Fingerprint is the SHA-256 of content, as "sha256:<64 hex digits>".
func Fingerprint(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Read returns a snapshot of name, of at most limit bytes. Errors carry the codes of Open, CodeTooLarge or
// CodeUnstable.
func (d *Dir) Read(name string, limit int64) (*Snapshot, error) {
	for range attempts {
		snap, err := d.readOnce(name, limit)
		if snap != nil || err != nil {
			return snap, err
		}
	}
	return nil, &Error{Code: CodeUnstable, Path: d.Join(name), Kind: Regular}
}

// ReadOwned is Read for a protocol's own file, which CheckOwner must accept.
func (d *Dir) ReadOwned(name string, limit int64) (*Snapshot, error) {
	snap, err := d.Read(name, limit)
	if err != nil {
		return nil, d.blame(name, err)
	}
	if err := d.CheckOwner(name, snap.Stamp); err != nil {
		return nil, err
	}
	return snap, nil
}

// readOnce returns neither a snapshot nor an error when the file changed while it was read.
func (d *Dir) readOnce(name string, limit int64) (*Snapshot, error) {
	f, err := d.Open(name, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Snapshot(limit)
}

// Snapshot reads the whole open file; it returns neither a snapshot nor an error when the file changed meanwhile.
func (f *File) Snapshot(limit int64) (*Snapshot, error) {
	if f.st.Size > limit {
		return nil, f.tooLarge(limit)
	}
	content, err := f.readAll(limit)
	if err != nil {
		return nil, err
	}
	if int64(len(content)) > limit {
		return nil, f.tooLarge(limit)
	}
	after, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !after.sameContent(f.st) {
		return nil, nil
	}
	return &Snapshot{Bytes: content, Stamp: after}, nil
}

// readAll reads to the end of the file, or one byte past the limit. A first read that brings exactly what stat announced
// is the end: growth shows in the stat afterwards. Some filesystems announce less than there is, so anything else is
// read on.
func (f *File) readAll(limit int64) ([]byte, error) {
	buf := make([]byte, f.st.Size+1)
	n, err := f.readSome(buf, 0)
	if err != nil || n > 0 && int64(n) == f.st.Size {
		return buf[:n], err
	}
	for {
		if n == len(buf) {
			if int64(n) > limit {
				return buf, nil
			}
			buf = append(buf, make([]byte, min(int64(n)+1, limit+1-int64(n)))...)
		}
		more, err := f.readSome(buf[n:], int64(n))
		if err != nil || more == 0 {
			return buf[:n], err
		}
		n += more
	}
}

func (f *File) tooLarge(limit int64) *Error {
	st := f.st
	return &Error{Code: CodeTooLarge, Path: f.path, Kind: Regular, Limit: limit, Stamp: &st}
}
