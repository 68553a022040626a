package sandbox

import "errors"

func newTerminal(s *Spec, limit int64) (*streams, error) {
	return nil, errors.New("not yet")
}

func isWasm(path string) bool { return false }
