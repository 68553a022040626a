package session

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
)

// Process names a process for good: a process id is used again, a process id
// with its start time since a machine's boot is not.
type Process struct {
	PID     int    `json:"pid"`
	Start   uint64 `json:"start"`
	UID     uint32 `json:"uid"`
	Boot    string `json:"boot"`
	Machine string `json:"machine"`
	// Exe is the program it ran when it was looked at. It is shown and never
	// compared: a process can change it.
	Exe string `json:"exe,omitzero"`
}

// IsZero reports whether p is no process.
func (p Process) IsZero() bool { return p.PID == 0 }

// Is says whether both are the same process, run by the same user.
func (p Process) Is(q Process) bool {
	return p.PID == q.PID && p.Start == q.Start && p.UID == q.UID && p.Boot == q.Boot && p.Machine == q.Machine
}

// String writes the process id, and the program where it is known.
func (p Process) String() string {
	if p.Exe == "" {
		return strconv.Itoa(p.PID)
	}
	return strconv.Itoa(p.PID) + " " + p.Exe
}

// Peer is who is at the other end of a connection: a process with its
// ancestors, on a unix socket, or the holder of a token.
type Peer struct {
	// Chain is the process itself, its parent, and so on up.
	Chain []Process
	// Token is the id of the token that was presented, see [Agent.TokenID].
	Token string
}

// ErrGone says that a peer's process ended while it was looked at, or cannot
// be seen from here.
var ErrGone = errors.New("the process at the other end has gone or cannot be seen")

// inside says whether the peer runs in the tree of a process.
func (p Peer) inside(root Process) bool {
	return !root.IsZero() && slices.ContainsFunc(p.Chain, root.Is)
}

// between are programs that agents start hooks through.
var between = []string{"sh", "bash", "dash", "zsh", "ash", "ksh", "fish", "busybox", "env", "timeout", "nice"}

// Anchor picks the agent's process from the chain of a hook it started: the
// nearest ancestor that is not a shell in between. A session is bound to it.
func Anchor(chain []Process) (Process, error) {
	for i, p := range chain {
		if i == 0 || slices.Contains(between, path.Base(p.Exe)) {
			continue
		}
		if p.PID <= 1 {
			break
		}
		return p, nil
	}
	return Process{}, fmt.Errorf("%w: no agent among its ancestors", ErrGone)
}
