//go:build !linux

package changes

import "errors"

func contentOf(string, string) ([]byte, error) { return nil, errors.ErrUnsupported }

func read(string, string) (*Set, error) { return nil, errors.ErrUnsupported }

// Accept needs a kernel that can open without following links.
func (s *Set) Accept(Acceptance) ([]string, error) { return nil, errors.ErrUnsupported }
