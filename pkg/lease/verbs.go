package lease

import (
	"context"
	"time"
)

// AcquireRequest asks for the lease.
type AcquireRequest struct {
	Duration time.Duration // MinDuration to MaxDuration; 0 is DefaultDuration
	Label    string        // at most MaxLabel characters
	TakeOver bool          // also when an expired lease is there
	Observe  bool          // watch an expired lease for its whole duration before taking it over
}

// Acquire creates the lease, or takes over an expired one when that is asked for. With a nil error the file named the
// outcome's lease at a moment between call and return, and nobody else held it. A *Refusal or *regfile.Error leaves the
// file as it was; only a Refusal with Written may be followed by a lease of this call's.
func (s *Store) Acquire(ctx context.Context, req AcquireRequest) (*Outcome, error) {
	if req.Duration == 0 {
		req.Duration = DefaultDuration
	}
	self, _ := s.opts.Self()
	t := terms{
		holderID: s.opts.NewID(), token: s.opts.NewID(), hostname: self.Hostname,
		label: req.Label, duration: req.Duration, takeOver: req.TakeOver,
	}
	o, now, err := s.observe()
	if err != nil {
		return nil, err
	}
	if _, refusal := t.decide(o, now); refusal != nil {
		return nil, s.located(refusal)
	}
	if req.Observe && o.Lease != nil {
		if err := s.watch(ctx, o); err != nil {
			return nil, err
		}
		if err := s.CheckPath(); err != nil {
			return nil, err
		}
	}
	return s.mutate(ctx, "acquire", o, t.decide)
}

// watch looks at an expired lease for one full recorded duration on a clock of this machine's own, and fails when a byte
// of it changes: on a filesystem shared by machines whose clocks disagree, a holder that lives renews within that time.
func (s *Store) watch(ctx context.Context, o Observed) error {
	s.opts.Observing(o.Lease, o.Lease.term())
	end := s.opts.Boottime() + o.Lease.term()
	for {
		seen, err := s.read()
		if err != nil {
			return err
		}
		if !seen.same(o) {
			m := mutation{Store: s, first: o}
			r := m.changed(seen)
			r.How += ", so its holder may live"
			return r
		}
		left := end - s.opts.Boottime()
		if left <= 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(left, s.iv.observe)):
		}
	}
}

// Renew extends the lease of holder; a zero duration keeps the term. The expiry strictly increases.
func (s *Store) Renew(ctx context.Context, holder string, duration time.Duration) (*Outcome, error) {
	return s.byHolder(ctx, "renew", renewal{holder, s.opts.NewID(), duration}.decide)
}

// Release removes the lease of holder, expired or not.
func (s *Store) Release(ctx context.Context, holder string) (*Outcome, error) {
	return s.byHolder(ctx, "release", removal{holder}.decide)
}

func (s *Store) byHolder(ctx context.Context, op string, decide decision) (*Outcome, error) {
	o, now, err := s.observe()
	if err != nil {
		return nil, err
	}
	if _, refusal := decide(o, now); refusal != nil {
		return nil, s.located(refusal)
	}
	return s.mutate(ctx, op, o, decide)
}
