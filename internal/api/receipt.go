package api

import (
	"context"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/observe"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
)

// ReceiptRequest says what holds a run that is about to start.
type ReceiptRequest struct {
	// Args and Dir are those of the run, as it will start.
	Args jsontext.Value `json:"args"`
	Dir  string         `json:"dir"`
	// Backend is what holds it, Guarantees what that proved.
	Backend    string   `json:"backend"`
	Guarantees []string `json:"guarantees,omitzero"`
	// Child is the process that waits for the answer to become the command, 0
	// where the back-end starts none before it.
	Child int `json:"child,omitzero"`
}

// waiting are the back-ends whose child waits, and whether it has namespaces.
// For the others a receipt comes before there is anything to look at.
var waiting = map[string]bool{"bubblewrap": true, "landlock": false}

// opener returns whose an open call is, to a caller in the session that it was
// opened in.
func (s *Server) opener(ctx context.Context, c *caller, id string) (owner call.Principal, shown bool, err error) {
	if owner, shown, err = s.opts.Gate.Opener(ctx, id); err != nil {
		return owner, false, err
	}
	_, err = s.opts.Doors.Session(ctx, SessionAsk{Agent: owner.Agent, TokenID: c.tokenID, Peer: c.peer, ID: owner.Session, Path: owner.Path, Surface: c.surface})
	return owner, shown, err
}

// confined says whether an event comes through the channel of a run that has
// shown what holds it. The agent in there reaches neither the gate's files nor
// its socket, whoever the gate runs as.
func (s *Server) confined(ctx context.Context, c *caller, run string) (bool, error) {
	if run == "" {
		return false, nil
	}
	_, shown, err := s.opener(ctx, c, run)
	if err == nil && !shown {
		err = &Error{Status: http.StatusConflict, Text: "the run has not shown what holds it"}
	}
	return err == nil, err
}

// receipt takes what a launcher shows. It comes from within the session that
// the call was opened in: from the process tree that a hook's session is bound
// to, if it was a hook that asked.
func (s *Server) receipt(ctx context.Context, c *caller, req *http.Request, in *ReceiptRequest) (*none, error) {
	id := req.PathValue("id")
	owner, _, err := s.opener(ctx, c, id)
	if err != nil {
		return nil, err
	}
	return nil, s.opts.Gate.Receive(ctx, id, owner, gate.Receipt{
		Call:    &call.Call{Kind: call.External, Operation: call.OpRun, Args: in.Args, Dir: observe.RealDir(in.Dir)},
		Backend: in.Backend, Shown: in.Guarantees,
		Seen: func() ([]string, error) { return Seen(c.peer, in.Backend, in.Child) },
	})
}

// Seen is what the gate sees for itself of a launcher and of the child that waits
// to become the command.
func Seen(launcher *session.Peer, backend string, child int) ([]string, error) {
	namespaces, waits := waiting[backend]
	if waits && child <= 0 {
		return nil, session.ErrLauncher
	}
	return session.Launched(launcher, child, namespaces)
}
