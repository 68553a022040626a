package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
)

// HookEvent is what an agent's hook sent, and who sent it.
type HookEvent struct {
	Host string
	Peer *session.Peer
	Held bool
	// Inside says that the agent itself runs in a sandbox of the gate's, so
	// that what it starts is held already.
	Inside bool
	Body   []byte
	// Wait is how long the hook can wait, Defer whether its host may be told
	// to come back later.
	Wait  time.Duration
	Defer bool
}

// HookReply is what the hook prints and the code it ends with.
type HookReply struct {
	Stdout, Stderr []byte
	Exit           int
}

// SeenRequest asks which calls of a session came to the gate.
type SeenRequest struct {
	// Session is the host's name of the session, IDs its ids of calls.
	Session string   `json:"session"`
	IDs     []string `json:"ids"`
}

// SeenResponse lists those that did not.
type SeenResponse struct {
	Missing []string `json:"missing"`
}

// seen tells a process on this machine which of its own user's calls the gate
// never heard of.
func (s *Server) seen(ctx context.Context, c *caller, req *http.Request, in *SeenRequest) (*SeenResponse, error) {
	if c.peer == nil || c.tokenID != "" || s.opts.Seen == nil {
		return nil, errNoAgent
	}
	known, err := s.opts.Seen(ctx, fmt.Sprintf("%s-%d", req.PathValue("agent"), c.peer.Chain[0].UID), in.Session)
	if err != nil {
		return nil, err
	}
	out := &SeenResponse{Missing: []string{}}
	for _, id := range in.IDs {
		if !known[id] {
			out.Missing = append(out.Missing, id)
		}
	}
	return out, nil
}

// maxEvent is the largest event; the hook refuses larger ones itself.
const maxEvent = 2 << 20

// hookEvent answers a hook. The answer is not JSON: the hook prints it byte for
// byte and knows no format. The header tells it the exit code and how much of
// the body is standard output, the rest being standard error.
func (s *Server) hookEvent(w http.ResponseWriter, req *http.Request, c *caller) error {
	if c.peer == nil || c.tokenID != "" || s.opts.Hook == nil {
		return errNoAgent
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxEvent))
	if err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			return errTooLarge
		}
		return &Error{Status: http.StatusBadRequest, Text: "the event could not be read", cause: err}
	}
	wait, err := strconv.ParseInt(req.Header.Get("Gatehouse-Wait"), 10, 32)
	if err != nil || wait < 0 {
		wait = 0
	}
	confined, err := s.confined(req.Context(), c, req.Header.Get("Gatehouse-Run"))
	if err != nil {
		return err
	}
	peer := c.peer
	if confined {
		// The launcher speaks for what it holds, so it is the agent's process
		// that the session is bound to, and not what started the launcher.
		peer = &session.Peer{Chain: append(peer.Chain[:1:1], peer.Chain...)}
	}
	reply := s.opts.Hook(req.Context(), &HookEvent{
		Host: req.PathValue("agent"), Peer: peer, Held: confined || held(c.peer), Inside: confined, Body: body,
		Wait: min(time.Duration(wait)*time.Millisecond, maxWait), Defer: req.Header.Get("Gatehouse-Defer") == "yes",
	})
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Length", strconv.Itoa(len(reply.Stdout)+len(reply.Stderr)))
	h.Set("Gatehouse-Answer", fmt.Sprintf("%d %d %d", reply.Exit, len(reply.Stdout), len(reply.Stderr)))
	_, err = w.Write(append(reply.Stdout, reply.Stderr...))
	return err
}
