// Package registry is the service registry of one user: which service owns a root directory, at which loopback endpoint and in
// which epoch.
//
// # Protocol
//
// A state home has two closed directories for the registry: registry/ with format.json, roots.json and registry.lock, and
// roots/<id>/ for each root, where id is the first 32 hex digits of the SHA-256 of the root's physical path. Every file is
// compact JSON in a fixed order of keys with a newline, of mode 0600 in directories of mode 0700, owned by the caller; any other
// name is a refusal that names it. Writes are staged in stage/ and renamed; each is made durable in its directory.
//
// Every mutation holds registry.lock, a claim file of package claim. A failure before the first write removes it again. From
// the first write on, a failure, and a registry that is found corrupt under it, keeps it: a half-done change is evidence, and
// nothing changes until it is repaired. Reads go on, and say so.
//
// The orders of an acquire and of a release are AcquireOrder and ReleaseOrder. Before each step everything that the operation
// knows is compared by its stamp; the file that a step replaces or removes is read again and compared by its bytes as well.
//
// # Guarantees
//
//   - No two rows overlap, by whole path segments or by directory, and no two share an endpoint.
//   - What is there is the state before an operation, the one after it, or one that is fenced by the retained lock.
//   - A file that changed in any way since it was read, also one that was copied back, is noticed before anything is decided on
//     it.
//   - The capability is in its own file and in what Access returns, and nowhere else: not in a digest, an error or a receipt.
//   - Anything that cannot be trusted is uncertain, and refused; nothing is repaired, adopted or aged out on the way.
//
// # Not guaranteed
//
//   - No service is ready because a file says idle; only the service itself can say that.
//   - A bind mount of a part of a root is not seen.
//   - Programs of the same user that do not take part can change anything.
//
// # Clock and units
//
// The since of a checkout lock is of the wall clock, for people. Stamps are nanoseconds of the filesystem's clock, compared for
// equality within one boot.
//
// # After a crash at each step
//
// A kill leaves registry.lock, which is then retained, and stages, which the next holder of the lock sweeps.
//
// # Errors
//
// *Refusal for the protocol's answers, *regfile.Error for files.
//
// # Concurrency
//
// Any number of processes may use one state home. A Home may be used by one goroutine at a time.
//
// # Compatibility
//
// checkout.lock is the lock that older single-process writers take; it is tried once, and one that is not the registration's is
// never moved.
package registry
