// Package lease is the fleet lease: one file that names who may drive a fleet, and until when.
//
// # Protocol
//
// Beside the lease file LOCK lie LOCK.mutex, its claim (package claim); LOCK.stage, the one staging path; and
// LOCK.journal. The lease is one JSON object, indented by two spaces, with a final newline:
//
//	holderId         UUID, opaque, made at acquire
//	hostname         information only
//	acquiredAt       RFC 3339
//	expiresAt        RFC 3339 with a zone, years 1970 to 9999
//	durationSeconds  a finite number > 0
//	token            UUID, new at every mutation
//	fence            the fence token, a whole number; absent reads as 0
//	label            free text for people
//
// A journal line is one Entry. Every mutation passes through one primitive: it is decided on observed bytes; enters the
// claim; removes a stranded stage; compares the bytes; reads the clock and decides again; for an acquire or a takeover
// appends the journal line with the next fence token and syncs it; compares again; applies (create, replace or remove);
// reads back and finds its own token; checks that the claim is still its own; and only then reports success. Renew and
// release append their journal line after that, and a failure to do so is a warning.
//
// The next fence token is one more than the highest of the lease being replaced and the journal's lines. The end of the
// journal is read: 4 KiB, and further back as long as no line there was written by an acquire, a takeover or a
// compaction, since only those tell the highest number by themselves. A Store that wrote the last line itself, and finds
// the journal as that line left it (inode, size, modification time, and the line), knows the number already. A line has
// to lie exactly where the journal ended when its number was chosen. Past 1 MiB the journal is replaced by one line with
// the highest number and the last 100 lines.
//
// # Guarantees
//
//   - Among participants, on one filesystem and one clock, at most one holder's lease is unexpired at any moment.
//   - The lease file is the old bytes or the new ones, whole, at every moment.
//   - A refusal leaves the lease file as it was. A loss after the first comparison may leave a journal line and a skipped
//     number.
//   - Fence tokens strictly increase over all acquires and takeovers, across releases, and none is used twice.
//   - Another program's members of a lease file survive a renewal, at their places.
//   - A Keeper reports a loss no later than a grace before the lease ends, whatever disk or claim its renewal waits for.
//     The lease ends when the wall clock reaches its expiry, or the boot clock the moment before the renewal plus the
//     duration, whichever is first. A lease that has vanished is never made again, and an expired one never renewed. That the
//     path leads to another directory by now is a loss like these: others cannot see the lease any more.
//
// # Not guaranteed
//
//   - A holder that is stopped, and does not know that its lease has expired, is not kept from writing. The fence token is
//     for that: let the resource refuse a lower number than it has seen.
//   - Edits by programs that do not take the claim are noticed when they fall between the steps, not prevented.
//   - Machines that share the file and disagree about the time: expiry is judged by the reader's clock.
//     AcquireRequest.Observe replaces that by a whole duration of watching.
//   - A Keeper in a process that is stopped, or on a machine that is suspended, reports when it runs again.
//   - Setting a journal aside while there is no lease forgets the highest fence token.
//
// # Clock and units
//
// Expired means expiresAt ≤ now, by the wall clock, and that is the only comparison. Times are written in UTC with
// milliseconds. An observation and a keeper's deadline are measured on CLOCK_BOOTTIME as well.
//
// # After a crash at each step
//
// Inside the claim, a crash leaves the claim file, which stays until an operator clears it. After the stage: a stranded
// LOCK.stage, which the next mutation removes. After the journal line: a number that is skipped. After the apply: the new
// lease, whose holder id nobody was told; it expires.
//
// A power cut: an acquire's journal line is durable before its lease is published, so its number is never chosen again
// even if the lease is lost. The name of a new journal is made durable when it is created. The name of the lease is not:
// losing it makes the lease absent, its holder's next renewal fails, and whoever acquires meanwhile gets a higher number.
// A release that is undone by a power cut leaves a lease that expires.
//
// # Errors
//
// *Refusal for the protocol's answers, *regfile.Error for files and the system; both have an ErrorCode.
//
// # Concurrency
//
// Any number of processes may use the same files, and any number of goroutines the same Store.
//
// # Compatibility
//
// The first six members are those of an existing Node implementation, byte for byte; either may drive the fleet. It keeps
// unknown members and does not know the journal: a lease of its own has no fence token.
package lease
