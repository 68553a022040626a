package aql

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/activation"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
)

// Tool is an MCP tool over the gate's own operations.
type Tool struct {
	Name        string
	Description string
	InputSchema jsontext.Value
	// ReadOnly tools change nothing, Destructive ones may take something away.
	ReadOnly    bool
	Destructive bool
}

// Caller is who calls a tool, as the door knows it.
type Caller struct {
	Principal call.Principal
	// Held says that the caller runs as a user who cannot reach the gate.
	Held bool
	// Surface is where the call came in, such as "mcp".
	Surface string
}

// Result is what a tool answers: always both as text and as structure.
type Result struct {
	Text       string
	Structured jsontext.Value
	// IsError says that the operation was not performed, or failed.
	IsError bool
}

// Tools are the gate's own operations as agents call them.
type Tools struct {
	Gate   *gate.Gate
	Native *Native
	// Begin starts the trail of a batch that is done whole or not at all.
	Begin func(batch string) *activation.Trail
	// Wait is how long a call is held for a person who can be reached.
	Wait time.Duration
	// More are tools of other parts of the gate; nil for none.
	More More
	Log  *slog.Logger

	// turn is held by such a batch while it runs, so that nothing comes between
	// what it does and what it may have to take back.
	turn sync.RWMutex
}

// More are tools beside those over operations. They take their calls through
// the gate themselves.
type More interface {
	List() []Tool
	Call(ctx context.Context, who Caller, name string, args jsontext.Value) Result
}

// single is the name of the one tool of the single-endpoint mode; in the other
// mode there is one per endpoint, with the endpoint's name after it.
const single = "mcp_aql"

// List returns the tools: one per endpoint, or the one that takes them all.
func (t *Tools) List(oneEndpoint bool) []Tool {
	tools := operationTools(oneEndpoint)
	if t.More != nil {
		tools = append(tools, t.More.List()...)
	}
	return tools
}

func operationTools(oneEndpoint bool) []Tool {
	if oneEndpoint {
		return []Tool{{
			Name: single, InputSchema: jsontext.Value(inputSchema), Destructive: true,
			Description: "The gate's own operations, all in one tool: " + names(0) + ". Operation introspect describes them. " + batchWords,
		}}
	}
	var tools []Tool
	for _, e := range call.Endpoints() {
		tools = append(tools, Tool{
			Name: single + "_" + strings.ToLower(e.String()), InputSchema: jsontext.Value(inputSchema),
			Description: fmt.Sprintf("%s operations of the gate (%s unless introspect says otherwise): %s. %s", e, e.Base(), names(e), batchWords),
			ReadOnly:    e == call.Read, Destructive: e != call.Read && e != call.Create,
		})
	}
	return tools
}

// endpoint is the endpoint that a tool stands for; the tool for all has none.
func endpoint(tool string) (call.Endpoint, bool) {
	if tool == single {
		return 0, true
	}
	for _, e := range call.Endpoints() {
		if tool == single+"_"+strings.ToLower(e.String()) {
			return e, true
		}
	}
	return 0, false
}

// names lists the operations of an endpoint, of all for none.
func names(e call.Endpoint) string {
	var out []string
	for _, op := range call.Operations() {
		if e == 0 || op.Endpoint == e {
			out = append(out, op.Name)
		}
	}
	return strings.Join(out, ", ")
}

const batchWords = "Give one operation, or up to 50 as operations: they are decided together before any of them runs. " +
	"A call may be denied or wait for a person; the answer says so, and what you may do next."

const inputSchema = `{"type":"object","additionalProperties":false,"properties":{
"operation":{"type":"string","description":"What to do; introspect lists the operations."},
"element_type":{"type":"string","description":"The type of element the operation is about."},
"params":{"type":"object","description":"The operation's parameters."},
"operations":{"type":"array","minItems":1,"maxItems":50,"description":"A batch, instead of operation.","items":{"type":"object","required":["operation"],
"additionalProperties":false,"properties":{"operation":{"type":"string"},"element_type":{"type":"string"},"params":{"type":"object"}}}},
"all_or_nothing":{"type":"boolean","description":"Run none of a batch if one is denied, and take all of it back if one fails."}}}`

// input is what a tool takes.
type input struct {
	Operation   string         `json:"operation"`
	ElementType string         `json:"element_type"`
	Params      jsontext.Value `json:"params"`
	// Operations are a batch.
	Operations   []batchInput `json:"operations"`
	AllOrNothing bool         `json:"all_or_nothing"`
}

// batchInput is one operation of a batch.
type batchInput struct {
	Operation   string         `json:"operation"`
	ElementType string         `json:"element_type"`
	Params      jsontext.Value `json:"params"`
}

// Call performs what a tool is called with: it takes each operation through
// the gate, and performs it if it is allowed. It never fails: what went wrong
// is in the result, for the model to read.
func (t *Tools) Call(ctx context.Context, who Caller, tool string, args jsontext.Value) Result {
	e, ok := endpoint(tool)
	if !ok && t.More != nil && slices.ContainsFunc(t.More.List(), func(m Tool) bool { return m.Name == tool }) {
		return t.More.Call(ctx, who, tool, args)
	}
	if !ok {
		return failed(unknown("tool", tool, nil))
	}
	var in input
	if len(args) == 0 {
		args = jsontext.Value("{}")
	}
	if _, raw := call.StringArg(args, "tool_name"); raw && (e == 0 || e == call.Read) {
		// A host that was told to ask this tool for permission sends what it
		// wants to run, and nothing about operations. It takes one text for an
		// answer, and refuses one that comes in another form beside it.
		r := t.one(ctx, who, e, &input{Operation: "permission_prompt", Params: args})
		r.Structured = nil
		return r
	}
	if err := json.Unmarshal(args, &in, json.RejectUnknownMembers(true)); err != nil {
		return failed(refused("the arguments are not what this tool takes (operation, element_type, params; or operations, all_or_nothing): %v", err))
	}
	if in.Operations != nil {
		return t.batch(ctx, who, e, &in)
	}
	return t.one(ctx, who, e, &in)
}

// one takes a single operation through the gate and performs it.
func (t *Tools) one(ctx context.Context, who Caller, e call.Endpoint, in *input) Result {
	c, err := t.build(who, e, in)
	if err != nil {
		return failed(err)
	}
	ans, out, err := t.Do(ctx, gate.Submission{Call: c, Wait: t.Wait})
	switch {
	case ans.Verdict != gate.Allowed:
		return told(c, ans)
	case err != nil:
		return failed(err)
	}
	return succeeded(out)
}

// Do takes a native call through the gate and performs it if it is let
// through. The error is the operation's own; where the verdict is no allow
// nothing was performed.
func (t *Tools) Do(ctx context.Context, sub gate.Submission) (ans *gate.Answer, out any, err error) {
	sub.Runs = "gate"
	ans = t.Gate.Submit(ctx, sub)
	if ans.Verdict != gate.Allowed {
		return ans, nil, nil
	}
	c := sub.Call
	if ans.Edited != nil {
		c = ans.Edited // what the person made of it is what runs
	}
	out, err = t.perform(ctx, c, ans)
	return ans, out, err
}

// Check refuses a call that could not be performed: nobody is asked about a
// call that cannot run. A name that is not in the table, or that came by the
// wrong endpoint, is left for the gate to deny, on record.
func (t *Tools) Check(c *call.Call) error {
	if err := c.Normalize(); err != nil {
		return err
	}
	op, known := call.LookupOperation(c.Operation)
	if !known || c.Endpoint != 0 && op.Endpoint != c.Endpoint {
		return nil
	}
	return t.Native.Check(c.Operation, c.Args)
}

// build makes the call and refuses one that could not be performed.
func (t *Tools) build(who Caller, e call.Endpoint, in *input) (*call.Call, error) {
	c := &call.Call{
		Kind: call.Native, Surface: who.Surface, Principal: who.Principal, Held: who.Held,
		Operation: in.Operation, Endpoint: e, ElementType: in.ElementType, Args: in.Params,
	}
	return c, t.Check(c)
}

// perform runs a call that was let through and records how it ended.
func (t *Tools) perform(ctx context.Context, c *call.Call, ans *gate.Answer) (any, error) {
	if changes(c) {
		t.turn.RLock()
		defer t.turn.RUnlock()
	}
	out, err := t.Native.Run(ctx, job(c, ans, nil))
	outcome, detail := gate.Succeeded, ""
	if err != nil {
		outcome, detail = gate.Failed, err.Error()
	}
	t.finish(ctx, gate.Ended{CallID: ans.CallID, Principal: c.Principal, Outcome: outcome, Detail: detail})
	return out, err
}

// job is a call that was let through, as operations take it.
func job(c *call.Call, ans *gate.Answer, trail *activation.Trail) *Job {
	return &Job{Call: c, Decision: ans.Decision, Approved: ans.Decision.Pinned && !ans.Observed, Trail: trail}
}

// changes says whether an operation may change elements or what is in force.
// Those that wait for people do neither.
func changes(c *call.Call) bool {
	op, ok := call.LookupOperation(c.Operation)
	return ok && !op.Ungatable && op.Endpoint != call.Read && op.Endpoint != call.Execute
}

// finish records how calls ended, whether or not the caller is still there.
func (t *Tools) finish(ctx context.Context, ended ...gate.Ended) {
	if err := t.Gate.FinishAll(context.WithoutCancel(ctx), ended); err != nil {
		t.Log.Error("an outcome could not be recorded", "call", ended[0].CallID, "error", err)
	}
}

// told is the result of a call that was not let through.
func told(c *call.Call, ans *gate.Answer) Result {
	r := structured(gate.Tell(c, ans))
	r.Text, r.IsError = ans.Message, true
	return r
}

func succeeded(out any) Result { return structured(out) }

// structured is a result that says the same as text and as structure.
func structured(out any) Result {
	text, err := json.Marshal(out)
	if err != nil {
		return failed(err)
	}
	return Result{Text: string(text), Structured: text}
}

// failed is the result of an operation that was not performed. An error that
// was not made to be read stays in the log.
func failed(err error) Result {
	r := structured(struct {
		Error string `json:"error"`
	}{err.Error()})
	r.Text, r.IsError = err.Error(), true
	return r
}
