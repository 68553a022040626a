//go:build !linux

package gateway_test

import "os"

func dataSync(f *os.File) error { return f.Sync() }
