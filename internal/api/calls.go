package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/observe"
)

// maxWait bounds how long one request may wait for a person. A client that
// wants to wait longer repeats the call, which finds the same request.
const maxWait = 10 * time.Minute

// build makes a call of what came over the wire. The principal is who the
// door says it is; nothing in the body can change that.
func (s *Server) build(ctx context.Context, c *caller, in *CallRequest) (*call.Call, error) {
	id, err := c.own(in.Session)
	if err != nil {
		return nil, err
	}
	session, err := s.opts.Doors.Session(ctx, SessionAsk{
		Agent: c.agent, TokenID: c.tokenID, Peer: c.peer, ID: id, Workspace: in.Dir, Surface: c.surface,
	})
	if err != nil {
		return nil, err
	}
	built, err := BuildCall(in, c.surface, call.Principal{Agent: c.agent, Session: session, Path: in.Path})
	if err != nil {
		return nil, err
	}
	built.Held = held(c.peer)
	return built, nil
}

// BuildCall makes a call of a request for a principal that is known already.
func BuildCall(in *CallRequest, surface string, p call.Principal) (*call.Call, error) {
	kind, err := kindOf(in)
	if err != nil {
		return nil, err
	}
	c := &call.Call{
		Kind: kind, Surface: surface, Principal: p, Operation: in.Operation, Endpoint: in.Endpoint, ElementType: in.ElementType,
		Args: in.Args, Dir: observe.RealDir(in.Dir), Note: in.Note, Parent: in.Parent, Rewrites: in.Rewrites,
	}
	if len(in.Needs) > 0 {
		c.Tool = &call.Claims{Needs: in.Needs}
	}
	return c, nil
}

// kindOf reads the kind, or takes it from the operation's name.
func kindOf(in *CallRequest) (kind call.Kind, err error) {
	if in.Kind != "" {
		err = kind.UnmarshalText([]byte(in.Kind))
		if err != nil {
			return 0, &call.InvalidError{Field: "kind", Problem: err.Error()}
		}
		return kind, nil
	}
	if _, native := call.LookupOperation(in.Operation); native {
		return call.Native, nil
	}
	return call.External, nil
}

func (s *Server) decide(ctx context.Context, c *caller, _ *http.Request, in *CallRequest) (*DecideResponse, error) {
	built, err := s.build(ctx, c, in)
	if err != nil {
		return nil, err
	}
	d, f, err := s.opts.Gate.Decide(ctx, built)
	if err != nil {
		return nil, err
	}
	return NewDecideResponse(d, f), nil
}

// NewDecideResponse writes a decision with what it rests on.
func NewDecideResponse(d call.Decision, f *facts.Facts) *DecideResponse {
	return &DecideResponse{
		Level: d.Level, Why: d.Why(), Votes: slices.Collect(d.Votes()), Conflicts: d.Conflicts(), Requires: d.Requires,
		Digest: d.Digest, World: d.World, Policy: d.Policy, Pinned: d.Pinned,
		Class: f.Class, Risk: f.Risk, Words: f.Words, Uncommitted: f.Uncommitted, Destroys: f.Destroys,
	}
}

func (s *Server) submit(ctx context.Context, c *caller, _ *http.Request, in *CallRequest) (*callAnswer, error) {
	built, err := s.build(ctx, c, in)
	if err != nil {
		return nil, err
	}
	sub := gate.Submission{Call: built, Wait: min(time.Duration(in.WaitMS)*time.Millisecond, maxWait), Runs: "host", Ask: in.Ask, Budget: in.Budget}
	if in.Declared != nil {
		sub.Claim, sub.Refused = &facts.DeclaredTool{Risk: in.Declared.Risk, Used: in.Declared.Used, Inert: in.Declared.Inert}, in.Declared.Denied
	}
	if built.Kind == call.Native {
		return s.perform(ctx, sub)
	}
	return newCallAnswer(built, s.opts.Gate.Submit(ctx, sub)), nil
}

// perform submits a call of one of the gate's own operations. Nobody but the
// gate can perform it, so that "allowed" means that it was.
func (s *Server) perform(ctx context.Context, sub gate.Submission) (*callAnswer, error) {
	if sub.Call.Normalize() == nil { // else the gate says what is wrong with it
		if err := s.opts.Operations.Check(sub.Call); err != nil {
			return nil, err
		}
	}
	ans, done, err := s.opts.Operations.Do(ctx, sub)
	out := newCallAnswer(sub.Call, ans)
	switch {
	case ans.Verdict != gate.Allowed:
		return out, nil
	case err != nil:
		out.Outcome, out.Error = gate.Failed, err.Error()
		return out, nil
	}
	out.Outcome = gate.Succeeded
	out.Result, err = json.Marshal(done)
	return out, err
}

// newCallAnswer writes an answer.
func newCallAnswer(built *call.Call, ans *gate.Answer) *callAnswer {
	out := &callAnswer{Votes: votes{&ans.Decision}, CallResponse: CallResponse{
		CallID: ans.CallID, Verdict: ans.Verdict, Message: ans.Message, Level: ans.Decision.Level, Digest: ans.Decision.Digest,
		Request: ans.Request, Expires: ans.Expires, Final: ans.Final, Restore: ans.Restore, Budget: ans.Budget,
		Observed: ans.Observed, Session: built.Principal.Session, Requires: ans.Requires, Run: ans.Run, Lasting: ans.Lasting,
	}}
	if ans.Edited != nil {
		out.CallID, out.Edited = ans.Edited.ID, ans.Edited.Args
	}
	return out
}

func (s *Server) outcome(ctx context.Context, c *caller, req *http.Request, in *OutcomeRequest) (*none, error) {
	p, err := s.principal(ctx, c, in.Session, in.Path)
	if err != nil {
		return nil, err
	}
	return nil, s.opts.Gate.End(ctx, req.PathValue("id"), p, gate.End{Outcome: in.Outcome, Detail: in.Detail, Refusals: in.Refusals})
}

// principal is the caller in a session of its own.
func (s *Server) principal(ctx context.Context, c *caller, session, path string) (call.Principal, error) {
	session, err := c.own(session)
	if err != nil {
		return call.Principal{}, err
	}
	id, err := s.opts.Doors.Session(ctx, SessionAsk{Agent: c.agent, TokenID: c.tokenID, Peer: c.peer, ID: session, Surface: c.surface,
		Workspace: c.workspace, Apart: c.workspace != ""})
	return call.Principal{Agent: c.agent, Session: id, Path: path}, err
}

func (s *Server) requestStatus(ctx context.Context, c *caller, req *http.Request, _ *none) (*RequestStatus, error) {
	st, err := s.opts.Gate.Request(ctx, c.agent, req.PathValue("id"))
	if err != nil {
		return nil, err
	}
	out := &RequestStatus{ID: st.ID, State: st.State, Expires: st.Expires, Text: st.Text, EditedTo: st.EditedTo}
	if st.EditedTo == "" {
		return out, nil
	}
	edited, err := s.opts.Gate.Request(ctx, c.agent, st.EditedTo)
	if err != nil {
		return nil, err
	}
	if edited.State == "approved" && edited.Call != nil {
		out.EditedArgs = edited.Call.Args
	}
	return out, nil
}

func (s *Server) withdraw(ctx context.Context, c *caller, req *http.Request, _ *none) (*none, error) {
	return nil, s.opts.Gate.Withdraw(ctx, c.agent, req.PathValue("id"))
}

func (s *Server) openSession(ctx context.Context, c *caller, _ *http.Request, in *SessionRequest) (*SessionResponse, error) {
	ask := SessionAsk{Agent: c.agent, TokenID: c.tokenID, Peer: c.peer, ID: NewSession, Workspace: in.Workspace, Policy: in.Policy, Surface: c.surface}
	if _, err := c.own(NewSession); err != nil {
		return nil, err
	}
	id, err := s.opts.Doors.Session(ctx, ask)
	if err != nil || !in.Token {
		return &SessionResponse{Session: id}, err
	}
	token, err := s.opts.Doors.MintSessionToken(ctx, c.agent, c.tokenID, id)
	return &SessionResponse{Session: id, Token: token}, err
}

func (s *Server) endOwnSession(ctx context.Context, c *caller, req *http.Request, _ *none) (*none, error) {
	id, err := c.own(req.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return nil, s.opts.Doors.EndSession(ctx, SessionAsk{Agent: c.agent, TokenID: c.tokenID, Peer: c.peer, ID: id, Surface: c.surface})
}

// events tells that something may have changed, and nothing about what: the
// client reads again, with its own rights.
func (s *Server) events(w http.ResponseWriter, req *http.Request, _ *caller) error {
	release := s.opts.Desk.Present()
	defer release()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	flush := http.NewResponseController(w)
	for {
		changed := s.opts.Desk.Changed()
		if _, err := fmt.Fprint(w, "data: changed\n\n"); err != nil {
			return nil // the client is gone
		}
		if err := flush.Flush(); err != nil {
			return nil
		}
		select {
		case <-changed:
		case <-req.Context().Done():
			return nil
		}
	}
}

// export streams the log.
func (s *Server) export(w http.ResponseWriter, req *http.Request, _ *caller) error {
	w.Header().Set("Content-Type", "application/x-ndjson")
	return s.opts.Desk.Export(req.Context(), w)
}
