//go:build !linux

package store

import "os"

// directIO opens a file past the page cache, where that is a way to open one.
const directIO = 0

// dataSync makes what was written to a file durable.
func dataSync(f *os.File) error { return f.Sync() }
