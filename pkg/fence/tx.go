package fence

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"holdfast/pkg/atomicfile"
	"holdfast/pkg/claim"
	"holdfast/pkg/procid"
)

// transaction is one hold of the transaction file: every claim write happens in one, on a decision that was made on what was
// read in it.
type transaction struct {
	*Fence
	held    *claim.Held
	written *Claim // what this transaction has published
}

// transact runs f inside the transaction file. A release that fails is a *Refusal that says what had been written; so is a
// transaction file that was cleared meanwhile.
func (f *Fence) transact(ctx context.Context, op string, do func(*transaction) error) error {
	self, _ := f.opts.Self() // without a start key the evidence proves less, and the file excludes as well
	who := claim.Who{Tool: f.opts.Tool, Op: op, Token: f.opts.NewID(), Self: self}
	held, err := claim.Enter(ctx, f.dir, TxName, who, f.iv.txBound)
	if err != nil {
		return f.txRefused(err)
	}
	f.iv.at("entered")
	tx := &transaction{Fence: f, held: held}
	err = do(tx)
	if err == nil && !held.Holds() {
		err = f.located(&Refusal{Code: CodeTxLost, Written: tx.written})
	}
	if leaveErr := held.Leave(); leaveErr != nil {
		return f.located(&Refusal{Code: CodeTxReleaseFailed, Path: f.dir.Join(TxName), Written: tx.written, Err: errors.Join(leaveErr, err)})
	}
	return found(err)
}

func (f *Fence) txRefused(err error) error {
	var late *claim.TimeoutError
	if !errors.As(err, &late) {
		return err
	}
	r := &Refusal{Code: CodeTxHeld, Path: late.Inspection.Path, Tx: &late.Inspection, Err: late}
	if o, readErr := f.read(); readErr == nil {
		r.Claim = o.Claim
	}
	return f.located(r)
}

// publish writes the claim in the place of what was read. It reads back after a failure, for a call may fail and have been
// carried out; the generation is new, so a claim that carries it is this call's.
func (tx *transaction) publish(prior recorded, c *Claim) error {
	if !tx.held.Holds() {
		return tx.located(&Refusal{Code: CodeTxLost})
	}
	err := tx.put(prior, c)
	tx.iv.at("published")
	if err == nil {
		tx.written = c
		return nil
	}
	now, readErr := tx.read()
	if readErr == nil && now.Claim != nil && now.Claim.Generation == c.Generation {
		tx.written = c
		return nil
	}
	if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
		return tx.located(&Refusal{Code: CodeTxLost, Claim: now.Claim, Err: err})
	}
	return err
}

// put stages and renames. The first claim of a directory is also made durable in its directory: a claim that a power cut
// took back would leave a directory that was never fenced, and a fresh one looks safe to everybody. Later ones are not: what
// a power cut takes back then is the last row of a history whose every owner it has ended, and an owner that syncs anything
// of its own after a mark makes that mark durable with it where the filesystem orders its metadata.
func (tx *transaction) put(prior recorded, c *Claim) error {
	stage := stageName(ClaimName, os.Getpid())
	if prior.Claim == nil {
		if err := atomicfile.Create(tx.dir, stage, ClaimName, c.Encode(), claimMode); err != nil {
			return err
		}
		return tx.dir.Sync()
	}
	if err := atomicfile.CheckReplaceable(tx.dir, ClaimName); err != nil {
		return err
	}
	return atomicfile.Replace(tx.dir, stage, ClaimName, c.Encode(), *prior.stamp)
}

// InspectTx says what the transaction file is. It writes nothing.
func (f *Fence) InspectTx() (claim.Inspection, error) { return claim.Inspect(f.dir, TxName) }

// ClearTx removes an abandoned transaction file, or an unproven one by force. Errors: *claim.ClearError, *regfile.Error.
func (f *Fence) ClearTx(req claim.ClearRequest) (claim.Inspection, error) {
	return claim.Clear(f.dir, TxName, req)
}

// observe gathers what an admission is decided on; the owner of a closed claim is nobody's concern.
func (f *Fence) observe() (recorded, situation, error) {
	o, err := f.read()
	if err != nil {
		return o, situation{}, err
	}
	s := situation{Resource: f.resource, Directory: f.selected, Created: f.created, Claim: o.Claim}
	leases, err := nativeLeases(f.selected, f.resource)
	if err != nil {
		return o, s, err
	}
	s.Lease = len(leases) > 0
	if o.Claim != nil && o.Claim.State != Closed {
		h, err := f.hold()
		if err != nil {
			return o, s, err
		}
		s.Hold, s.Verdict = h, f.judge(o.Claim, h)
	}
	return o, s, nil
}

// judge says whether a claim's owner lives.
func (f *Fence) judge(c *Claim, h Hold) procid.Verdict {
	local := f.dir.IsLocal()
	return judged(f.opts.Judge(c.Owner, local), c.Owner, h, local)
}
