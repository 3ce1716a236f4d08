// Package doctor looks at trees and state directories and says what would hang, mislead or block.
//
// # Guarantees
//
//   - It opens directories, and regular files by package regfile; nothing else but as a bare handle. It never writes, removes
//     or signals anything.
//   - A path whose filesystem does not answer is called unresponsive after the patience, and what lies behind it is looked at. In
//     a directory where two things do not answer, and on a filesystem where eight do not, what else lies there is called
//     unresponsive as well, and not waited for.
//   - The memory of a scan does not grow with the number of entries, but with the depth of the tree, and up to a bound with the
//     largest directory.
//
// # Not guaranteed
//
//   - A thread that is stuck in the kernel stays stuck: a program that uses this package leaves its exit to another process
//     (package offload).
//   - Of a directory with more than a million names, only the first million are compared without their case.
//   - What changes while it is being looked at may be told as it was or as it is.
package doctor
