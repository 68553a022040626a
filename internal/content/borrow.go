package content

import "unsafe"

// borrow returns b as a string without copying it: a text that was folded or decoded is scanned once
// and forgotten, and a copy of it would cost as much again in memory. The string is good until b is
// written to; findings hold offsets, so nothing keeps a part of it.
func borrow(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
