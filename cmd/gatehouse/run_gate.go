package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/client"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
	"github.com/seed-3ebc6b8a/gatehouse/sandbox/egress"
)

// runGate takes a run through the gate and puts it on record there.
type runGate struct {
	client    *client.Client
	addresses []string // of the gate itself
	id        string   // the call, once it was let through
	session   string
	given     bool // somebody else's call: its end is for them to tell
	dir       string
}

// patience is how long a run waits for a person who can be reached.
const patience = 10 * time.Minute

// runGate returns the gate that is running here, nil if there is none. A gate
// that is there and does not answer as one stops the run.
func (a *app) runGate(ctx context.Context, callID string) (*runGate, error) {
	c, err := a.asAgent()
	if err != nil {
		return nil, err
	}
	h := &api.Health{}
	err = c.Do(ctx, "GET", "/v1/health", nil, h)
	switch {
	case errors.Is(err, client.ErrNoDaemon) && callID == "":
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &runGate{client: c, addresses: h.Addresses, id: callID, given: callID != ""}, nil
}

// attach puts the gate between the sandbox and the start of the command.
func (g *runGate) attach(s *sandbox.Spec, ask bool) {
	s.Net.Refuse = g.addresses
	if ask {
		s.Net.Ask = g.ask
	}
	spec := *s
	s.Before = func(st sandbox.Standing) error { return g.before(&spec, st, ask) }
}

// before asks for the run, now that it is known what would hold it, and shows
// the gate what does.
func (g *runGate) before(s *sandbox.Spec, st sandbox.Standing, ask bool) error {
	args, err := json.Marshal(&call.Run{
		Command: s.Command, Read: st.Read, Write: st.Write, Hosts: s.Net.Allow, Public: s.Net.Mode == sandbox.NetPublic, Ask: ask,
		Unconfined: st.Backend == sandbox.Unconfined,
	})
	if err != nil {
		return err
	}
	ctx := context.Background() // a person's answer takes as long as it takes
	g.dir = st.Dir
	if !g.given {
		got, err := g.submit(ctx, call.OpRun, args, "")
		if err != nil {
			return err
		}
		g.id, g.session = got.CallID, got.Session
	}
	err = g.client.Do(ctx, "POST", "/v1/calls/"+g.id+"/receipt", &api.ReceiptRequest{
		Args: args, Dir: st.Dir, Backend: string(st.Backend), Guarantees: st.Guarantees.Names(), Child: st.Process,
	}, nil)
	if err != nil && !g.given {
		err = errors.Join(err, g.tell(gate.End{Outcome: gate.Refused, Detail: "the gate did not take the receipt"}))
		g.id = ""
	}
	return err
}

// submit sends a call and returns its answer if it was let through.
func (g *runGate) submit(ctx context.Context, operation string, args []byte, parent string) (*api.CallResponse, error) {
	got := &api.CallResponse{}
	err := g.client.Do(ctx, "POST", "/v1/calls", &api.CallRequest{
		Kind: "external", Operation: operation, Args: args, Dir: g.dir, Parent: parent, WaitMS: int(patience.Milliseconds()),
	}, got)
	switch {
	case err != nil:
		return nil, err
	case got.Verdict != gate.Allowed:
		return nil, errors.New(got.Message)
	case got.Edited != nil:
		return nil, fmt.Errorf("it was approved with changes, and so is another run: %s", got.Edited)
	}
	return got, nil
}

// ask puts a host that was not declared before the gate, and so before a person
// where the policy asks for one.
func (g *runGate) ask(ctx context.Context, r egress.Request) egress.Answer {
	args, err := json.Marshal(map[string]string{"host": net.JoinHostPort(r.Host, strconv.Itoa(int(r.Port))), "command": r.Command})
	if err != nil {
		return egress.Refuse
	}
	got, err := g.submit(ctx, call.OpConnect, args, g.id)
	if err != nil {
		return egress.Refuse
	}
	end := &api.OutcomeRequest{Outcome: gate.Succeeded, Detail: "the connection was let through", Session: got.Session}
	if err := g.client.Do(ctx, "POST", "/v1/calls/"+got.CallID+"/outcome", end, nil); err != nil {
		return egress.Refuse
	}
	if got.Lasting {
		return egress.AllowSession
	}
	return egress.AllowOnce
}

// end tells the gate how the run ended and what was refused on the way.
func (g *runGate) end(r *sandbox.Result) error {
	if g == nil || g.id == "" || g.given {
		return nil
	}
	if r == nil {
		return g.tell(gate.End{Outcome: gate.Unknown, Detail: "the sandbox broke"})
	}
	end := gate.End{Outcome: gate.Succeeded, Detail: "exit " + strconv.Itoa(r.ExitCode)}
	if r.ExitCode != 0 || r.Ended != sandbox.EndExit {
		end.Outcome = gate.Failed
	}
	if r.Ended != sandbox.EndExit {
		end.Detail += ", ended: " + string(r.Ended)
	}
	for _, f := range r.Refusals {
		end.Refusals = append(end.Refusals, gate.Refusal{Kind: string(f.Kind), Subject: f.Subject, Program: f.Program, Reason: f.Reason, Count: f.Count})
	}
	return g.tell(end)
}

func (g *runGate) tell(end gate.End) error {
	ctx := context.Background() // also when the run was interrupted
	err := g.client.Do(ctx, "POST", "/v1/calls/"+g.id+"/outcome", &api.OutcomeRequest{
		Outcome: end.Outcome, Detail: end.Detail, Refusals: end.Refusals, Session: g.session,
	}, nil)
	if err != nil {
		return fmt.Errorf("how the run ended is not on record: %s", strings.TrimSpace(err.Error()))
	}
	return nil
}
