// Package doctor looks at trees and state directories and says what would hang, mislead or block.
//
// # Guarantees
//
//   - It opens directories, and regular files by package regfile; nothing else but as a bare handle. It never writes, removes
//     or signals anything.
//   - A path whose filesystem does not answer is called unresponsive after the patience, and what lies behind it is looked at.
//   - Memory does not grow with the number of entries, but with the largest directory and the width of the tree.
//
// # Not guaranteed
//
//   - A thread that is stuck in the kernel stays stuck: a program that uses this package leaves its exit to another process
//     (package offload).
//   - What changes while it is being looked at may be told as it was or as it is.
package doctor
