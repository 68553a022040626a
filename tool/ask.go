package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Decision is what a person said.
type Decision string

// The decisions. The zero value and everything unknown is no approval.
const (
	Approved  Decision = "approved"
	Edited    Decision = "edited"
	Rejected  Decision = "rejected"
	Responded Decision = "responded"
)

// Answer is a person's answer to a tool's question.
type Answer struct {
	Decision Decision
	// Payload is what was approved: the question's own, or what the person put
	// in its place.
	Payload json.RawMessage
	// Text is what the person said in words.
	Text string
}

// ErrNobody is the error of a question that nobody answered in time. It is no
// approval.
var ErrNobody = errors.New("nobody answered")

// Ask puts a question to a person, through the gate, and waits for the answer.
// The person sees the title and the whole payload, which must be an object.
func (e *Env) Ask(ctx context.Context, title string, payload any) (Answer, error) {
	if e.inv == nil || e.inv.agent.spec.Gate == nil {
		return Answer{}, fmt.Errorf("%w: no gate is connected", ErrNobody)
	}
	raw, err := json.Marshal(payload)
	if err != nil {
		return Answer{}, err
	}
	args, err := json.Marshal(map[string]json.RawMessage{"title": quoted(title), "payload": raw})
	if err != nil {
		return Answer{}, err
	}
	g := e.inv.agent.spec.Gate
	c := Call{Agent: e.inv.agent.spec.Name, Tool: e.tool.Name + ".question", Args: args, Approval: true}
	v, err := g.Submit(ctx, c)
	if err != nil {
		return Answer{}, err
	}
	if !v.Allowed {
		return answered(v)
	}
	if err := g.Done(context.WithoutCancel(ctx), c, v.ID, "succeeded", ""); err != nil {
		return Answer{}, err
	}
	if v.Args == nil {
		return Answer{Decision: Approved, Payload: raw}, nil
	}
	var edited struct {
		Payload json.RawMessage `json:"payload"`
	}
	if err := json.Unmarshal(v.Args, &edited); err != nil {
		return Answer{}, err
	}
	return Answer{Decision: Edited, Payload: edited.Payload}, nil
}

// answered reads a no, or an answer in words.
func answered(v Verdict) (Answer, error) {
	switch v.State {
	case "responded":
		return Answer{Decision: Responded, Text: v.Text}, nil
	case "denied":
		return Answer{Decision: Rejected, Text: v.Text}, nil
	}
	return Answer{Decision: Rejected}, fmt.Errorf("%w: %s", ErrNobody, v.Message)
}

func quoted(s string) json.RawMessage {
	raw, err := json.Marshal(s)
	if err != nil { // a string always has a JSON form
		return json.RawMessage(`""`)
	}
	return raw
}

// Call calls another tool of the same agent, which the tool must name among
// its Parts. What the other tool is denied, this one is.
func (e *Env) Call(ctx context.Context, name string, args any) (json.RawMessage, error) {
	if e.inv == nil || !slices.Contains(e.tool.Parts, name) {
		return nil, e.refuse(fmt.Errorf("it calls %s, which is not among its parts", name))
	}
	raw, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	out := e.inv.call(ctx, name, raw, e.budget)
	switch {
	case out.Denied:
		return nil, fmt.Errorf("%s was denied: %s", name, out.Reason)
	case out.Err != nil:
		return nil, out.Err
	}
	return out.Output, nil
}
