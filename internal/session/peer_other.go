//go:build !linux

package session

import (
	"errors"
	"syscall"
)

// PeerOf is not known here: sessions are bound to tokens.
func PeerOf(syscall.Conn) (Peer, error) { return Peer{}, errors.ErrUnsupported }

// Ancestry is not known here.
func Ancestry(int) ([]Process, error) { return nil, errors.ErrUnsupported }

// Alive cannot tell here, and a process that may live keeps its session.
func Alive(Process) bool { return true }
