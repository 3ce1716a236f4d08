// Package claim is the claim file: the one serializer of mutations.
//
// # Protocol
//
// The claim of a state file NAME is a file beside it. Whoever creates it may mutate NAME; whoever finds it waits.
//
// Enter: create it (O_CREAT|O_EXCL|O_NOFOLLOW, mode 0600); take flock(LOCK_EX|LOCK_NB) on it, polling with the descriptor
// open while an inspector or a clearer has the lock for a moment; check that the path still names that inode, else it was
// cleared and the entry starts over; only then write one JSON line of Evidence.
//
// Leave: lstat, compare the inode, unlink, then close.
//
// Clear, for an operator: open read-write, take the lock, read the evidence through that descriptor, lstat, compare,
// unlink, close.
//
// # Guarantees
//
//   - At most one participant is inside, whatever crashes at whatever step, as long as nobody is cleared by force.
//   - Nobody steals: there is no time-to-live, no mtime rule and no automatic takeover. Waiting is bounded.
//   - Nobody unlinks a claim whose kernel lock they do not hold, except the creator where the filesystem has no locks.
//   - A claim that is not a regular file is refused at once and never opened.
//
// # Not guaranteed
//
//   - The kernel lock excludes nobody. It tells an operator whether the creator still has the file open.
//   - Participants of other programs that only create and unlink are served, but their leftovers can only be called
//     unproven.
//
// # Clock and units
//
// Waiting is measured on the monotonic clock. EnteredAt and ages are of the wall clock, for people; nothing decides on
// them.
//
// # After a crash at each step
//
// After the creation: an empty claim, unproven. After the evidence: abandoned. After the unlink: nothing.
//
// # Errors
//
// *regfile.Error for files, *TimeoutError when the claim stayed, *ClearError when clearing is refused.
//
// # Concurrency
//
// Any number of processes, threads and goroutines may enter, inspect and clear at once.
//
// # Compatibility
//
// The order was model-checked with three mutators, two clearers, inspectors, a crash at every step and a participant
// that knows no kernel lock; each other order that was tried broke it.
package claim
