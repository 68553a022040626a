package api

import (
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
	Body []byte
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
	reply := s.opts.Hook(req.Context(), &HookEvent{
		Host: req.PathValue("agent"), Peer: c.peer, Held: held(c.peer), Body: body,
		Wait: min(time.Duration(wait)*time.Millisecond, maxWait), Defer: req.Header.Get("Gatehouse-Defer") == "yes",
	})
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Length", strconv.Itoa(len(reply.Stdout)+len(reply.Stderr)))
	h.Set("Gatehouse-Answer", fmt.Sprintf("%d %d %d", reply.Exit, len(reply.Stdout), len(reply.Stderr)))
	_, err = w.Write(append(reply.Stdout, reply.Stderr...))
	return err
}
