package registry

import (
	"context"
	"errors"
	"time"

	"holdfast/pkg/atomicfile"
	"holdfast/pkg/claim"
	"holdfast/pkg/regfile"
)

// locked is a mutation inside the registry lock.
type locked struct {
	*Home
	held  *claim.Held
	wrote bool // something may have been written: from now on a failure keeps the lock
}

// lock runs do inside the registry lock. A failure before the first write removes the lock again; from then on, and when the
// registry itself is found corrupt, the lock stays with everything as it stands.
func (h *Home) lock(ctx context.Context, op, root string, do func(*locked) error) error {
	if err := h.make(); err != nil {
		return err
	}
	held, err := h.enter(ctx, op, root)
	if err != nil {
		return err
	}
	return h.inside(held, root, func(l *locked) error {
		if err := l.private(); err != nil {
			return err
		}
		return do(l)
	})
}

// entered is the mutation inside a lock. The Home itself stays as it is for those who only look.
func (h *Home) entered(held *claim.Held) *locked {
	inner := *h
	inner.inLock = true
	return &locked{Home: &inner, held: held}
}

// inside runs do in a lock that was just taken, and settles what becomes of it.
func (h *Home) inside(held *claim.Held, root string, do func(*locked) error) error {
	h.iv.at("locked")
	l := h.entered(held)
	err := l.sweep()
	if err == nil {
		err = do(l)
	}
	if err == nil && !held.Holds() {
		err = h.lost(root)
	}
	if err != nil && (l.wrote || corruptRegistry(err)) {
		held.Keep()
		return retained(err, root)
	}
	if leaveErr := held.Leave(); leaveErr != nil && err == nil {
		err = leaveErr
	}
	return err
}

// enter takes the registry lock. One that is held is waited for; one that stays as it is and that nobody has open is retained.
func (h *Home) enter(ctx context.Context, op, root string) (*claim.Held, error) {
	self, _ := h.opts.Self() // without a start key the evidence proves less, and the lock excludes as well
	who := claim.Who{Tool: h.opts.Tool, Op: op, Root: root, Token: h.opts.NewID(), Self: self}
	for started := time.Now(); ; {
		before := h.lockStamp()
		held, err := claim.Enter(ctx, h.registry, lockFile, who, h.iv.retainedTime)
		var late *claim.TimeoutError
		if !errors.As(err, &late) {
			return held, err
		}
		in := late.Inspection
		if h.opts.Waiting != nil {
			h.opts.Waiting(func() (claim.Inspection, error) { return in, nil }, time.Since(started))
		}
		if unheld(in) && h.unheldStill(before) {
			return nil, &Refusal{Code: CodeUnavailable, Path: in.Path, Root: root, Lock: &in, How: retainedLock + "an operation stopped in the middle, and keeps everything as it stands"}
		}
		if time.Since(started) >= h.iv.lockBound {
			return nil, &Refusal{Code: CodeClaimTimeout, Path: in.Path, Root: root, Lock: &in, Err: late}
		}
	}
}

// unheld reports whether a lock is there that nobody has open.
func unheld(in claim.Inspection) bool { return in.State != claim.Absent && in.State != claim.HeldNow }

// lockStamp is what the lock is by its inode, size and times; zero when there is none.
func (h *Home) lockStamp() Stamp {
	st, err := h.registry.Lstat(lockFile)
	if err != nil {
		return Stamp{}
	}
	return stampOf(st)
}

// unheldStill reports whether the lock is the same as before and still not held. A look at a lock keeps its creator from taking
// it for a moment, and many that wait all look: so after a pause in which nobody needs to, it is looked at again.
func (h *Home) unheldStill(before Stamp) bool {
	const pause = 50 * time.Millisecond
	if before == (Stamp{}) || h.lockStamp() != before {
		return false
	}
	time.Sleep(pause)
	in, err := claim.Inspect(h.registry, lockFile)
	return err == nil && unheld(in) && h.lockStamp() == before
}

// lost is the refusal of a mutation whose lock somebody took away.
func (h *Home) lost(root string) error {
	return &Refusal{Code: CodeClaimLost, Path: h.registry.Join(lockFile), Root: root, How: "was taken away while this call was inside it"}
}

const retainedLock = "is a retained lock: "

// fence is the refusal of a look that a retained lock stands in the way of.
func (h *Home) fence(code, root, why string) error {
	r := &Refusal{Code: code, Path: h.registry.Join(lockFile), Root: root, How: retainedLock + why}
	if in, err := claim.Inspect(h.registry, lockFile); err == nil && in.State != claim.Absent {
		r.Lock = &in
	}
	return r
}

// corruptError marks the refusal of a registry that cannot be trusted, found under the lock.
type corruptError struct{ error }

func (e *corruptError) Unwrap() error { return e.error }

func corruptRegistry(err error) bool {
	var c *corruptError
	return errors.As(err, &c)
}

// registryLocked reads the registry under the lock, which is not asked whether it is retained: this call has it.
func (l *locked) registryLocked() (*Registry, error) {
	r := &Registry{}
	err := l.readRegistry(r)
	if isUncertain(err) {
		return nil, &corruptError{err}
	}
	return r, err
}

// retained is the error of an operation that has left the lock as a fence.
func retained(err error, root string) error {
	var r *Refusal
	if errors.As(err, &r) {
		kept := *r
		kept.Retained = true
		return &kept
	}
	return &Refusal{Code: codeOf(err), Root: root, Err: err, Retained: true}
}

// codeOf is the stable code of an error.
func codeOf(err error) string {
	var coded interface{ ErrorCode() string }
	if errors.As(err, &coded) {
		return coded.ErrorCode()
	}
	return regfile.CodeIO
}

// private refuses while the umask takes the owner's own permissions: nothing that is written could be read again.
func (l *locked) private() error {
	st, err := l.registry.Lstat(lockFile)
	if err == nil && st.Perm() != fileMode {
		err = uncertain(l.registry.Join(lockFile), "was made with mode %04o by the umask, and must have 0600", st.Perm())
	}
	return err
}

// sweep removes what killed writers staged: only the lock's holder stages.
func (l *locked) sweep() error {
	entries, err := l.stage.Entries()
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() {
			return uncertain(l.stage.Join(e.Name()), "does not belong among the stages")
		}
		if err := atomicfile.Remove(l.stage, e.Name()); err != nil {
			return err
		}
	}
	return nil
}

// create publishes a new file. What cannot even be staged was not written.
func (l *locked) create(d *regfile.Dir, name string, content []byte) (*Snapshot, error) {
	staged, err := atomicfile.StageNew(l.stage, l.opts.NewID(), content, fileMode)
	if err != nil {
		return nil, err
	}
	defer staged.Discard()
	l.wrote = true
	if err := staged.Create(d, name); err != nil {
		return nil, err
	}
	return l.settled(d, name)
}

// replace publishes a file in the place of exactly the one that was, bytes and inode and times.
func (l *locked) replace(d *regfile.Dir, name string, was *Snapshot, content []byte) (*Snapshot, error) {
	like, err := l.unchanged(d, name, was)
	if err != nil {
		return nil, err
	}
	staged, err := atomicfile.StageLike(l.stage, l.opts.NewID(), content, like)
	if err != nil {
		return nil, err
	}
	defer staged.Discard()
	l.wrote = true
	if err := staged.Replace(d, name); err != nil {
		return nil, err
	}
	return l.settled(d, name)
}

// remove removes exactly the file that was.
func (l *locked) remove(d *regfile.Dir, name string, was *Snapshot) error {
	if _, err := l.unchanged(d, name, was); err != nil {
		return err
	}
	l.wrote = true
	if err := atomicfile.Remove(d, name); err != nil {
		return err
	}
	return d.Sync()
}

// settled makes a name durable and returns what it names now.
func (l *locked) settled(d *regfile.Dir, name string) (*Snapshot, error) {
	if err := d.Sync(); err != nil {
		return nil, err
	}
	snap, err := readFile(d, name, maxRootsFile)
	if err == nil && snap == nil {
		err = conflict(d.Join(name), "was taken away as soon as it was written")
	}
	return snap, err
}

// unchanged refuses unless the file is exactly the one of the snapshot.
func (l *locked) unchanged(d *regfile.Dir, name string, was *Snapshot) (regfile.Stamp, error) {
	now, err := readFile(d, name, maxRootsFile)
	if err != nil {
		return regfile.Stamp{}, err
	}
	if !now.same(was) {
		return regfile.Stamp{}, conflict(d.Join(name), "is not the file any more that this was decided on")
	}
	return d.Lstat(name)
}
