// Package fence is the owner fence of a session directory: one owner at a time, with proof of how the last one ended.
//
// # Protocol
//
// A fence is the claim that a process takes inside a session directory before it takes the directory's native lease and opens
// its storage, and that stays when it is gone. Files in the directory R, the real path:
//
//   - entwurf-owner.json, the owner claim (Claim): mode 0600, replaced by rename, tab-indented JSON with a final newline;
//   - entwurf-owner.tx, the transaction file: a claim file of package claim, waited for at most 2 s;
//   - entwurf-owner.json.tmp-<pid>-<12 hex digits>, the stage that a write renames;
//   - entwurf-owner.hold, whose kernel lock a run shares with all that it starts; never removed or replaced;
//   - entwurf-owner.breaks.jsonl, one line for each thing that an operator did away with.
//
// Every write of the claim happens inside one hold of the transaction file, on a decision that was made on what was read in
// it, and gives the claim a new generation. An admission reads the claim, looks for the native lease at S.lock and R.lock,
// judges the owner by its process and by the hold, and answers by the table of Rows. A transition needs the generation that
// its owner wrote last, which a Ticket outside the directory keeps: the generation about to be written is synced there before
// the claim's rename, and becomes the owner's after it.
//
// # Guarantees
//
//   - Among participants, at most one owner is admitted at a time, and nobody is taken over who is not proven dead: by
//     package procid, with the hold free. While anything of a run lives, its directory is not admitted to, from any pid
//     namespace that shares the filesystem.
//   - An owner whose claim was taken over or broken learns of it at its next mark, which is refused and changes nothing.
//   - A claim that cannot be trusted is refused and never overwritten; a refusal writes nothing.
//   - What this package writes, it reads back, and so does the other implementation when it is of schema 2.
//
// # Not guaranteed
//
//   - No foreign lease is excluded: only the native lease's two names are looked at. A closed claim is the end receipt of a
//     participating owner, not proof that nobody touched the directory since.
//   - An owner that is paused between two marks goes on after it was broken; the fence stops nobody.
//   - A process of a run that closes the hold's descriptor keeps nobody out once the wrapper is gone. One that unlocks it, as
//     flock -u does, takes the lock from the whole run: it is over for others as soon as the wrapper is gone.
//   - After a power cut the claim is a whole one, but may be the one before the last: the first claim of a directory is made
//     durable by name, later ones are when the filesystem, or the owner's own sync, gets to it. Every owner of that time has
//     ended with the power.
//   - On macOS and FreeBSD no hold is attributed to the processes that have it open.
//
// # Clock and units
//
// Times in claims are of the wall clock, RFC 3339 in UTC with milliseconds, for people: no admission decides on them. The age
// of a native lease that ClearLease removes is of the wall clock; the patience of TakeNative is monotonic.
//
// # After a crash at each step
//
// Before the rename: the old claim, at worst with a transaction file (inspected and cleared by its token), a stage (listed,
// harmless), a ticket that is pending. After it: the new claim, and the ticket finds it at its pending generation. An owner
// that was killed is dead, and the next admission takes over. TakeNative leaves an empty directory at S.lock or R.lock, which
// goes with the dead owner when the claim says that it held one, and else by ClearLease.
//
// # Errors
//
// *Refusal for the protocol's answers, *regfile.Error for files, *LeaseLostError for a native lease, *procid.OwnerError for
// an owner that cannot be recorded.
//
// # Concurrency
//
// Any number of processes may admit, mark and look at once. A Fence may be used by one goroutine at a time, a NativeHold by
// several.
//
// # Compatibility
//
// Schemas 1 and 2 are another implementation's. It knows neither this package's start keys nor schema 3, and refuses where it
// cannot judge; it never takes over a live owner of ours. Schema 1 is judged by the same rows and never written.
package fence
