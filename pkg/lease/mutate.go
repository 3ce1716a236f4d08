package lease

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/pkg/atomicfile"
	"holdfast/pkg/claim"
	"holdfast/pkg/regfile"
)

// Outcome is a mutation that succeeded.
type Outcome struct {
	Lease    *Lease   // published, or removed
	Replaced *Lease   // what a takeover put an end to
	Warnings []string // what went wrong after the success, sentences

	began time.Duration // on the boot clock, before the mutation: its duration counts from no earlier
}

// mutation is one passage through the primitive.
type mutation struct {
	*Store
	op     string
	first  Observed // the state it was decided on
	decide decision
	held   *claim.Held
}

// mutate is the one way the lease file changes. The decision is made twice: on first by the caller, and inside the claim
// on the same bytes with the clock as it is then, because a mutation that was delayed by minutes must not act on an old
// time. Every refusal leaves the lease file as it was.
func (s *Store) mutate(ctx context.Context, op string, first Observed, decide decision) (*Outcome, error) {
	if s.dir == nil {
		return nil, &regfile.Error{Code: regfile.CodeDirectoryInvalid, Path: s.path, Err: errNoDirectory}
	}
	began := s.opts.Boottime()
	s.iv.at("observed")
	held, err := claim.Enter(ctx, s.dir, s.claimName(), s.who(op), s.iv.claimBound)
	if err != nil {
		return nil, s.claimRefused(err)
	}
	m := mutation{Store: s, op: op, first: first, decide: decide, held: held}
	s.iv.at("claimed")
	out, err := m.inside()
	if err == nil {
		out.began = began
	}
	if leaveErr := held.Leave(); leaveErr != nil && err == nil {
		out.Warnings = append(out.Warnings, fmt.Sprintf("the claim could not be removed: %v", leaveErr))
	}
	return out, err
}

// claimRefused states the lease's situation first, for the claim alone does not say whether anybody holds anything.
func (s *Store) claimRefused(err error) error {
	var late *claim.TimeoutError
	if !errors.As(err, &late) {
		return err
	}
	r := &Refusal{Code: CodeClaimTimeout, Path: late.Inspection.Path, Claim: &late.Inspection, Err: late, now: s.opts.Now()}
	o, readErr := s.read()
	r.Lease = o.Lease
	if readErr != nil {
		r.How = "the lease file cannot be read or trusted, so whether somebody holds it is not known"
	}
	return r
}

// inside holds the claim.
func (m *mutation) inside() (*Outcome, error) {
	if err := m.clearStage(); err != nil {
		return nil, err
	}
	if err := m.compare(); err != nil {
		return nil, err
	}
	now := m.opts.Now()
	c, refusal := m.decide(m.first, now)
	if refusal != nil {
		return nil, m.located(refusal)
	}
	if err := m.checkTargets(c); err != nil {
		return nil, err
	}
	free, err := m.reserve(c)
	if err != nil {
		return nil, err
	}
	defer free()
	if c.numbered() {
		if err := m.takeNumber(c, now); err != nil {
			return nil, err
		}
		m.iv.at("journaled")
	}
	if err := m.compare(); err != nil {
		return nil, err
	}
	m.iv.at("compared")
	content := c.content()
	applyErr := m.apply(c, content)
	m.iv.at("applied")
	free()
	if err := m.confirm(c, content, applyErr); err != nil {
		return nil, err
	}
	m.iv.at("confirmed")
	if !m.held.Holds() {
		return nil, &Refusal{Code: CodeChanged, Path: m.path, Written: c.publish,
			How: "the claim was cleared by force while this call was inside it"}
	}
	return m.finish(c, now), nil
}

// clearStage removes a stranded stage: only a claim's holder stages, so no live one can be there. A directory is nobody's
// stage and stays.
func (m *mutation) clearStage() error {
	err := regfile.Retry(func() error { return unix.Unlinkat(m.dir.FD(), m.stageName(), 0) })
	switch {
	case err == nil, errors.Is(err, unix.ENOENT):
		return nil
	case errors.Is(err, unix.EISDIR), errors.Is(err, unix.EPERM):
		st, statErr := m.dir.Lstat(m.stageName())
		if statErr == nil && st.Kind == regfile.Directory {
			return &regfile.Error{Code: regfile.CodeNotRegular, Path: m.dir.Join(m.stageName()), Kind: st.Kind, Stamp: &st}
		}
		if foreign := m.dir.CheckOwner(m.stageName(), st); statErr == nil && foreign != nil {
			return foreign
		}
	}
	e := regfile.IOError("remove", m.dir.Join(m.stageName()), err)
	if errors.Is(err, unix.EBUSY) {
		e.Code = regfile.CodeMountPoint
	}
	return e
}

// compare fails unless the lease file is still what the mutation was decided on.
func (m *mutation) compare() error {
	snap, err := m.snapshot()
	if err != nil {
		return err
	}
	if m.first.sameAs(snap) {
		return nil
	}
	o, err := m.parse(snap)
	if err != nil {
		return err
	}
	return m.changed(o)
}

func (m *mutation) changed(now Observed) *Refusal {
	r := &Refusal{Code: CodeChanged, Path: m.path, Lease: now.Lease}
	switch {
	case now.Lease == nil:
		r.How = "the lease is gone"
	case m.first.Lease == nil:
		r.How = "a lease of " + now.Lease.Who() + " has appeared"
	default:
		r.How = "the lease differs, it names " + now.Lease.Who()
	}
	return r
}

// checkTargets refuses, before anything is written, what would fail after the journal or the lease had been. A change that
// takes a number finds out about the journal by itself: it opens it first.
func (m *mutation) checkTargets(c change) error {
	if c.prior != nil {
		if err := atomicfile.CheckReplaceable(m.dir, m.name); err != nil {
			return err
		}
	}
	if c.numbered() {
		return nil
	}
	st, err := m.dir.Lstat(m.journalName())
	switch {
	case err != nil && !regfile.IsAbsent(err):
		return err
	case err == nil && st.Kind != regfile.Regular:
		return &regfile.Error{Code: regfile.CodeNotRegular, Path: m.dir.Join(m.journalName()), Kind: st.Kind, Stamp: &st}
	}
	return nil
}

// reserve takes the descriptors that reading back needs, before anything is written: without them a lease would be published
// that nobody is told of. Where there is a lease already it has just been read, with as many.
func (m *mutation) reserve(c change) (free func(), err error) {
	if c.prior != nil {
		return func() {}, nil
	}
	const handleAndFile = 2
	return m.dir.Reserve(handleAndFile)
}

func (m *mutation) takeNumber(c change, now time.Time) error {
	var replaced uint64
	if c.prior != nil {
		replaced = c.prior.Fence
	}
	e := m.entry(c, now)
	if err := m.number(&e, replaced); err != nil {
		return m.journalRefused(err)
	}
	c.publish.Fence = e.Fence
	return nil
}

// journalRefused turns interference with the journal into the protocol's word.
func (m *mutation) journalRefused(err error) error {
	if errors.Is(err, atomicfile.ErrMoved) || errors.Is(err, fs.ErrExist) {
		return &Refusal{Code: CodeChanged, Path: m.path, Lease: m.first.Lease, How: "somebody else wrote to its journal", Err: err}
	}
	return err
}

// entry is the change's journal line, without its number when that is still to be chosen.
func (m *mutation) entry(c change, now time.Time) Entry {
	l := c.publish
	if l == nil {
		l = c.prior
	}
	self, _ := m.opts.Self()
	return Entry{
		Fence: l.Fence, Op: c.op, HolderID: clip(l.HolderID, MaxLabel), Token: clip(l.Token, MaxLabel),
		At: FormatTime(now), Hostname: self.Hostname, Label: clip(l.Label, MaxLabel),
	}
}

// content is what the lease file will hold; nil removes it.
func (c change) content() []byte {
	if c.publish == nil {
		return nil
	}
	return c.publish.Encode()
}

func (m *mutation) apply(c change, content []byte) error {
	switch {
	case c.publish == nil:
		return atomicfile.Remove(m.dir, m.name)
	case c.prior == nil:
		return atomicfile.Create(m.dir, m.stageName(), m.name, content, fileMode)
	}
	st, err := m.dir.Lstat(m.name)
	if err != nil {
		return err
	}
	return atomicfile.Replace(m.dir, m.stageName(), m.name, content, st)
}

// confirm reads back, also after an apply that failed: a call may fail and have been carried out. The token is new, so
// bytes that carry it are this call's.
func (m *mutation) confirm(c change, content []byte, applyErr error) error {
	snap, err := m.snapshot()
	if err == nil && (Observed{Lease: c.publish, Bytes: content}).sameAs(snap) {
		return nil
	}
	if applyErr != nil && !errors.Is(applyErr, fs.ErrExist) && !errors.Is(applyErr, fs.ErrNotExist) {
		return applyErr
	}
	var o Observed
	if err == nil {
		o, err = m.parse(snap)
	}
	r := m.changed(o)
	if err != nil {
		r.Lease, r.How, r.Err = nil, "it cannot be read back: "+err.Error(), err
	} else if applyErr != nil && o.same(m.first) {
		r.How = "somebody else used its staging file"
	}
	if applyErr == nil {
		r.Written = c.publish
	}
	return r
}

// finish adds the journal line of a change that needed no number. The change is a fact by now: a full disk must not turn a
// release into a failure.
func (m *mutation) finish(c change, now time.Time) *Outcome {
	out := &Outcome{Lease: c.publish}
	if c.publish == nil {
		out.Lease = c.prior
	}
	if c.op == OpTakenOver {
		out.Replaced = c.prior
	}
	if !c.numbered() {
		e := m.entry(c, now)
		if err := m.note(&e); err != nil {
			out.Warnings = append(out.Warnings, fmt.Sprintf("the journal lacks the line of this %s: %v", m.op, err))
		}
	}
	return out
}
