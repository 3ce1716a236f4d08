package registry

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/uuid"

	"holdfast/pkg/atomicfile"
	"holdfast/pkg/regfile"
)

// receipt is the owner's proof for the later verbs: what every file of its root was when it last wrote.
type receipt struct {
	Schema     string        `json:"schema"`
	StateHome  string        `json:"stateHome"`
	Root       string        `json:"root"`
	Epoch      string        `json:"epoch"`
	OwnerToken string        `json:"ownerToken"`
	Files      []receiptFile `json:"files"`
	Pending    string        `json:"pending,omitzero"` // SHA-256 of the registration that is about to be written
}

// receiptFile is one file of a receipt.
type receiptFile struct {
	File     string `json:"file"`
	Identity string `json:"identity,omitzero"` // none of the capability
	Stamp    Stamp  `json:"stamp"`
}

func (r receipt) check() error {
	k := &checker{}
	k.schema(r.Schema, schemaReceipt)
	k.that(validPath(r.StateHome) && validPath(r.Root), "no usable stateHome or root")
	k.that(validUUID(r.Epoch) && validUUID(r.OwnerToken), "an epoch or ownerToken that is no UUID")
	k.that(r.Pending == "" || hex64(r.Pending), "a pending that is not 64 hex digits")
	for _, f := range r.Files {
		k.that(slices.Contains(readNames, f.File), "a file that no root has")
		k.that((f.Identity == "") == (f.File == capabilityName) && (f.Identity == "" || hex64(f.Identity)), "a file without its identity")
	}
	return k.result()
}

// newReceipt is the receipt of a registration with the files as they are.
func newReceipt(r Registration, files map[string]*Snapshot) receipt {
	out := receipt{Schema: schemaReceipt, StateHome: r.StateHome, Root: r.Root, Epoch: r.Epoch, OwnerToken: r.OwnerToken, Files: []receiptFile{}}
	for _, name := range readNames {
		if s := files[name]; s != nil {
			out.Files = append(out.Files, receiptFile{name, s.Identity, s.Stamp})
		}
	}
	return out
}

// file is a file of the receipt; nil when it was absent.
func (r receipt) file(name string) *Snapshot {
	for _, f := range r.Files {
		if f.File == name {
			return &Snapshot{Identity: f.Identity, Stamp: f.Stamp}
		}
	}
	return nil
}

// receiptPath is where an acquire keeps its receipt: a new file outside the closed directories.
func (l *locked) receiptPath(asked string, r Registration) (string, error) {
	if asked == "" {
		dir, err := l.sub(receiptsDir)
		if err != nil {
			return "", err
		}
		return dir.Join(RootID(r.Root) + "-" + r.Epoch + ".json"), dir.Close()
	}
	path, err := Physical(asked)
	if err != nil {
		return "", err
	}
	for _, dir := range []string{registryDir, rootsDir, stageDir, brokenDir} {
		if within(filepath.Join(l.path, dir), path) {
			return "", conflict(path, "would lie in a closed directory of the state home")
		}
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return "", receiptExists(path)
	}
	dir, err := regfile.OpenDir(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	return path, dir.Close()
}

// reserveReceipt makes a receipt of no file before anything else is written, so that one that cannot be made refuses the acquire
// instead of stopping it at its end.
func reserveReceipt(path string, r Registration) error {
	dir, err := regfile.OpenDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	name := filepath.Base(path)
	err = atomicfile.Create(dir, receiptStage(name), name, encode(newReceipt(r, nil)), fileMode)
	if errors.Is(err, fs.ErrExist) {
		return receiptExists(path)
	}
	return err
}

func receiptExists(path string) error {
	return conflict(path, "exists: a receipt is made new for each acquire")
}

func receiptStage(name string) string { return name + ".stage-" + uuid.NewString()[:8] }

// writeReceipt publishes a receipt, new or in the place of an older one.
func writeReceipt(path string, r receipt) error {
	dir, err := regfile.OpenDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	name := filepath.Base(path)
	stage := receiptStage(name)
	st, err := dir.Lstat(name)
	switch {
	case regfile.IsAbsent(err):
		err = atomicfile.Create(dir, stage, name, encode(r), fileMode)
	case err != nil:
		return err
	case st.Kind != regfile.Regular:
		return &regfile.Error{Code: regfile.CodeNotRegular, Path: path, Kind: st.Kind, Stamp: &st}
	default:
		err = atomicfile.Replace(dir, stage, name, encode(r), st)
	}
	if err != nil {
		return err
	}
	return dir.Sync()
}

// readReceipt reads a receipt. Errors: *regfile.Error, or a *Refusal of code uncertain.
func readReceipt(path string) (receipt, error) {
	dir, err := regfile.OpenDir(filepath.Dir(path))
	if err != nil {
		return receipt{}, err
	}
	defer dir.Close()
	snap, err := dir.Read(filepath.Base(path), maxFile)
	if err != nil {
		return receipt{}, err
	}
	if err := ownFile(path, snap.Stamp); err != nil {
		return receipt{}, err
	}
	var r receipt
	if err := decode(snap.Bytes, &r); err != nil {
		return receipt{}, &Refusal{Code: CodeUncertain, Path: path, How: "is no receipt", Err: err}
	}
	return r, nil
}

func removeReceipt(path string) error {
	dir, err := regfile.OpenDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return atomicfile.Remove(dir, filepath.Base(path))
}
