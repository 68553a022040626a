// Package observe looks at this machine on behalf of package facts.
//
// [Machine.Facts] describes a call in the world as it is: links are followed,
// files are identified by device, inode and hash, and everything that was
// looked at goes into the world digest of the facts. One look per question and
// call: what was answered once is answered the same until the call is
// described, so that a description never mixes two worlds.
//
// The package reads and never changes anything, runs no program, and decides
// nothing. What it cannot read it reports as such, and that counts against the
// call.
package observe
