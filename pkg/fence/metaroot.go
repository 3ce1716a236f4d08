package fence

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"

	"holdfast/pkg/atomicfile"
	"holdfast/pkg/claim"
	"holdfast/pkg/regfile"
)

// The directories of a meta root, and the names in them.
const (
	sessionsDir  = "meta-sessions"
	mailboxDir   = "meta-mailbox"
	sendersDir   = "meta-senders"
	receiversDir = "meta-receivers"
	armLocksDir  = "meta-record-arm-locks"

	recordSuffix   = ".meta.json"
	locationSuffix = ".location.json"
	armLockSuffix  = ".lock"
)

// metaMode is the mode of a record and a location, under the umask.
const metaMode = 0o600

// Garden addresses a citizen: a garden id under one meta root.
type Garden struct {
	ID       string
	MetaRoot string // absolute
}

// Roots are the four roots of a meta root, given separately.
type Roots struct{ Sessions, Mailbox, Senders, Receivers string }

// MetaRoot is the meta root whose standard children the four are. The error is a *Refusal of code reserve-meta-root-split.
func (r Roots) MetaRoot() (string, error) {
	root := filepath.Dir(filepath.Clean(r.Sessions))
	for _, child := range []struct{ given, name string }{
		{r.Sessions, sessionsDir}, {r.Mailbox, mailboxDir}, {r.Senders, sendersDir}, {r.Receivers, receiversDir},
	} {
		if filepath.Clean(child.given) != filepath.Join(root, child.name) {
			return "", &Refusal{Code: CodeMetaRootSplit, Path: child.given, How: child.given + " is not " + filepath.Join(root, child.name) + ": the four roots are no children of one meta root"}
		}
	}
	return root, nil
}

// check refuses what addresses nobody. The error is a *Refusal of code reservation-invalid.
func (g Garden) check() error {
	switch {
	case !ValidGardenID(g.ID):
		return &Refusal{Code: CodeReservationInvalid, How: "the garden id " + g.ID + " is none: it is YYYYMMDDTHHMMSS-xxxxxx with six hex digits at the end"}
	case !filepath.IsAbs(g.MetaRoot):
		return &Refusal{Code: CodeReservationInvalid, How: "the meta root " + g.MetaRoot + " is no absolute path"}
	}
	return nil
}

func (g Garden) recordPath() string { return filepath.Join(g.MetaRoot, sessionsDir, g.ID+recordSuffix) }

func (g Garden) locationPath() string {
	return filepath.Join(g.MetaRoot, receiversDir, g.ID+locationSuffix)
}

// ArmLockPath is the record-arm lock's path.
func (g Garden) ArmLockPath() string {
	return filepath.Join(g.MetaRoot, armLocksDir, g.ID+armLockSuffix)
}

// gardenHash is the name of a cwd's directory in the durable-session layout: 24 hex digits of its SHA-256.
func gardenHash(cwd string) string {
	sum := sha256.Sum256([]byte(cwd))
	return hex.EncodeToString(sum[:])[:24]
}

// layout is where a profile keeps the durable session n of a cwd.
func layout(profile, cwd, n string) string {
	return filepath.Join(profile, "experimental", "durable-sessions", gardenHash(cwd), n)
}

// armed is the record-arm lock of a garden, held.
type armed struct {
	dir     *regfile.Dir
	held    *claim.Held
	written *Claim // what was written under it
}

// arm runs do inside the record-arm lock, which is taken at once or not at all: busy is a *Refusal of code record-arm-busy,
// before anything was read. A release that fails is one of code record-arm-release-failed, with what had been written.
func (g Garden) arm(ctx context.Context, op string, opts Options, do func(*armed) error) error {
	opts.setDefaults()
	dir, err := g.makeArmDir()
	if err != nil {
		return err
	}
	defer dir.Close()
	self, _ := opts.Self()
	who := claim.Who{Tool: opts.Tool, Op: op, Token: opts.NewID(), Self: self}
	held, err := claim.Enter(ctx, dir, g.ID+armLockSuffix, who, 0)
	var late *claim.TimeoutError
	if errors.As(err, &late) {
		return &Refusal{Code: CodeArmBusy, Path: late.Inspection.Path, Tx: &late.Inspection, Err: late}
	}
	if err != nil {
		return err
	}
	a := &armed{dir: dir, held: held}
	err = do(a)
	if err == nil && !held.Holds() {
		err = &Refusal{Code: CodeTxLost, Path: g.ArmLockPath(), Written: a.written}
	}
	if leaveErr := held.Leave(); leaveErr != nil {
		return &Refusal{Code: CodeArmReleaseFailed, Path: g.ArmLockPath(), Written: a.written, Err: errors.Join(leaveErr, err)}
	}
	return err
}

// makeArmDir opens the directory of the record-arm locks, and makes it in a meta root that has none yet.
func (g Garden) makeArmDir() (*regfile.Dir, error) {
	root, err := regfile.OpenDir(g.MetaRoot)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	path := filepath.Join(g.MetaRoot, armLocksDir)
	if err := atomicfile.Mkdir(path); err != nil {
		return nil, err
	}
	return regfile.OpenDir(path)
}

// InspectArm says what the record-arm lock is. It writes nothing.
func (g Garden) InspectArm() (claim.Inspection, error) {
	dir, err := g.openArmDir()
	if err != nil {
		if regfile.IsAbsent(err) {
			return claim.Inspection{Path: g.ArmLockPath(), State: claim.Absent, Reason: "there is no claim"}, nil
		}
		return claim.Inspection{}, err
	}
	defer dir.Close()
	return claim.Inspect(dir, g.ID+armLockSuffix)
}

// ClearArm removes an abandoned record-arm lock, or an unproven one by force. Errors: *claim.ClearError, *regfile.Error.
func (g Garden) ClearArm(req claim.ClearRequest) (claim.Inspection, error) {
	dir, err := g.openArmDir()
	if err != nil {
		return claim.Inspection{}, err
	}
	defer dir.Close()
	return claim.Clear(dir, g.ID+armLockSuffix, req)
}

func (g Garden) openArmDir() (*regfile.Dir, error) {
	if err := g.check(); err != nil {
		return nil, err
	}
	return regfile.OpenDir(filepath.Join(g.MetaRoot, armLocksDir))
}

// staging is a record or a location that is written and waits for its name.
type staging struct {
	dir    *regfile.Dir
	staged *atomicfile.Staged
	name   string
	fresh  bool // nothing has the name
}

// stage writes a record or a location under a temporary name; the arm lock serializes it. publish gives it its name, and
// discard, which must be called, takes it away again unless it has it.
func stage(path string, content []byte) (*staging, error) {
	if err := atomicfile.Mkdir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	dir, err := regfile.OpenDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	s := &staging{dir: dir, name: filepath.Base(path)}
	if err := s.write(content); err != nil {
		dir.Close()
		return nil, err
	}
	return s, nil
}

func (s *staging) write(content []byte) error {
	temp := stageName(s.name, os.Getpid())
	st, err := s.dir.Lstat(s.name)
	switch {
	case regfile.IsAbsent(err):
		s.fresh = true
		s.staged, err = atomicfile.StageNew(s.dir, temp, content, metaMode)
	case err != nil:
	case st.Kind != regfile.Regular:
		err = &regfile.Error{Code: regfile.CodeNotRegular, Path: s.dir.Join(s.name), Kind: st.Kind, Stamp: &st}
	default:
		s.staged, err = atomicfile.StageLike(s.dir, temp, content, st)
	}
	return err
}

func (s *staging) publish() error {
	if !s.fresh {
		return s.staged.Replace(s.dir, s.name)
	}
	if err := s.staged.Create(s.dir, s.name); err != nil {
		return err
	}
	return s.dir.Sync()
}

func (s *staging) discard() {
	s.staged.Discard()
	s.dir.Close()
}

// get reads a record or a location; nil when it is missing. Errors are *regfile.Error.
func get(path string) (*regfile.Snapshot, error) {
	dir, err := regfile.OpenDir(filepath.Dir(path))
	if err != nil {
		if regfile.IsAbsent(err) {
			return nil, nil
		}
		return nil, err
	}
	defer dir.Close()
	snap, err := dir.ReadOwned(filepath.Base(path), regfile.DefaultLimit)
	if regfile.IsAbsent(err) {
		return nil, nil
	}
	return snap, err
}
