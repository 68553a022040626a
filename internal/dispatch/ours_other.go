//go:build !unix

package dispatch

import "io/fs"

// ours cannot be told here; no job runs here that would leave something.
func ours(fs.FileInfo) bool { return false }
