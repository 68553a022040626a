package inrun

import (
	"context"
	"errors"
	"io"
)

var errNotYet = errors.New("this channel is not there yet")

// Claude speaks Claude Code's control protocol.
func Claude(prompt []byte, ask Ask) Drive { return notYet }

// Codex speaks with `codex app-server`.
func Codex(start CodexStart, ask Ask) Drive { return notYet }

// ACP speaks the Agent Client Protocol.
func ACP(start ACPStart, ask Ask) Drive { return notYet }

func notYet(_ context.Context, in io.WriteCloser, _ io.Reader, _ io.Writer) error {
	return errors.Join(errNotYet, in.Close())
}
