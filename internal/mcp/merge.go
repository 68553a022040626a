package mcp

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/mcp/wire"
)

// introduceAll passes the client's handshake on to all upstreams and makes one
// introduction of theirs.
func (x *exchange) introduceAll(ctx context.Context) ([]byte, bool) {
	targets, err := x.front.targets(ctx)
	if err != nil {
		return errorMessage(x.message.Value(x.message.ID), codeInternal, err.Error(), nil), false
	}
	return x.merge(ctx, targets)
}

// merge asks all upstreams who they are. The answer is the gate's own, with
// what any of them can do. One that does not answer is left out.
func (x *exchange) merge(ctx context.Context, targets []*target) ([]byte, bool) {
	answers := make([]*wire.Message, len(targets))
	var all sync.WaitGroup
	for i, t := range targets {
		all.Go(func() {
			r, err := x.capture(x.as(ctx), t, x.message)
			if err == nil {
				r, err = wire.Parse(x.pinInstructions(ctx, t, r))
			}
			if err != nil {
				x.front.log.Warn("an upstream did not introduce itself", "upstream", t.name, "error", err)
				return
			}
			answers[i] = r
		})
	}
	all.Wait()
	base := answers[0]
	if base == nil {
		return errorMessage(x.message.Value(x.message.ID), codeInternal, "the gate's own tools did not answer", nil), false
	}
	if base.Result.IsZero() {
		return base.Raw, false
	}
	result := base.Value(base.Result)
	caps := wire.Member(result, "capabilities")
	versions := stringsOf(wire.Member(result, "supportedVersions"))
	version := wire.Text(wire.Member(result, "protocolVersion"))
	instructions := []string{wire.Text(wire.Member(result, "instructions"))}
	for i, r := range answers[1:] {
		if r == nil || r.Result.IsZero() {
			continue
		}
		other := r.Value(r.Result)
		caps = union(caps, wire.Member(other, "capabilities"))
		if theirs := stringsOf(wire.Member(other, "supportedVersions")); theirs != nil {
			versions = slices.DeleteFunc(versions, func(v string) bool { return !slices.Contains(theirs, v) })
		}
		if v := wire.Text(wire.Member(other, "protocolVersion")); v != "" {
			version = min(version, v)
		}
		if text := wire.Text(wire.Member(other, "instructions")); text != "" {
			instructions = append(instructions, "The MCP server "+targets[i+1].name+" says: "+text)
		}
	}
	change := map[string]jsontext.Value{"capabilities": caps, "instructions": wire.Quote(strings.TrimSpace(strings.Join(instructions, "\n\n")))}
	if versions != nil {
		if list, err := json.Marshal(versions); err == nil {
			change["supportedVersions"] = list
		}
	}
	if version != "" {
		change["protocolVersion"] = wire.Quote(version)
	}
	return base.WithResult(change), true
}

func stringsOf(v jsontext.Value) (out []string) {
	if v.Kind() != '[' || json.Unmarshal(v, &out) != nil {
		return nil
	}
	return out
}

// union joins two objects of capabilities: what either has, the joint has.
func union(a, b jsontext.Value) jsontext.Value {
	if a.Kind() != '{' {
		return b
	}
	names, values := wire.Members(b)
	change := map[string]jsontext.Value{}
	for i, name := range names {
		switch old := wire.Member(a, name); {
		case old.Kind() == '{' && values[i].Kind() == '{':
			change[name] = union(old, values[i])
		case old.Kind() != 't':
			change[name] = values[i]
		}
	}
	return wire.Set(a, change)
}

// listenAll passes on what any upstream says by itself.
func (x *exchange) listenAll(ctx context.Context) error {
	targets, err := x.front.targets(ctx)
	if err != nil {
		return err
	}
	x.out.Head(http.StatusOK, true)
	x.out.open()
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, t := range targets[1:] {
		all.Go(func() {
			l, err := x.live(ctx, t)
			if err == nil {
				err = l.conn.Listen(ctx, "", &filter{out: &spaced{out: x.out, target: t, mu: &mu}, target: t, live: l, way: x.outputWay(t)})
			}
			if err != nil && ctx.Err() == nil {
				x.front.log.Debug("an upstream has no stream", "upstream", t.name, "error", err)
			}
		})
	}
	all.Wait()
	<-ctx.Done() // a stream that nobody writes to stays open all the same
	return nil
}

// subscribeAll listens to all upstreams. What each acknowledges is told once,
// together, when all have answered.
func (x *exchange) subscribeAll(ctx context.Context, targets []*target) {
	m := x.message
	x.out.Head(http.StatusOK, true)
	x.out.open()
	ack := &acknowledged{out: x.out, left: len(targets)}
	var all sync.WaitGroup
	for _, t := range targets {
		ask, ok := x.forOne(t, targets)
		if !ok {
			ack.skip()
			continue
		}
		all.Go(func() {
			one := &oneAck{all: ack, target: t}
			x.handle(ctx, t, ask, one)
			one.end()
		})
	}
	all.Wait()
	_ = x.out.Event(wire.Event{Data: response(m.Value(m.ID), "result", map[string]any{
		resultTypeField: "complete", "_meta": map[string]any{"io.modelcontextprotocol/subscriptionId": m.Value(m.ID)},
	})}) // a client that is gone hears nothing
}

// forOne makes the subscription to one upstream: only its own resources.
func (x *exchange) forOne(t *target, targets []*target) (*wire.Message, bool) {
	m := x.message
	want := m.Value(m.Param("notifications"))
	var own []string
	for _, uri := range stringsOf(wire.Member(want, "resourceSubscriptions")) {
		if of, inner := byURI(targets, uri); of == t {
			own = append(own, inner)
		}
	}
	change := map[string]jsontext.Value{}
	if wire.Member(want, "resourceSubscriptions") != nil {
		change["resourceSubscriptions"] = nil
		if len(own) > 0 {
			if list, err := json.Marshal(own); err == nil {
				change["resourceSubscriptions"] = list
			}
		}
	}
	ask, err := wire.Parse(m.WithParams(map[string]jsontext.Value{"notifications": wire.Set(object(want), change)}))
	return ask, err == nil
}

// acknowledged collects the acknowledgements of all upstreams.
type acknowledged struct {
	out *httpOut

	mu      sync.Mutex
	left    int
	first   *wire.Message
	granted jsontext.Value
	early   []wire.Event
}

func (a *acknowledged) skip() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.count(nil)
}

// count notes one acknowledgement, or that none will come; after the last the
// client gets the joint one and what came meanwhile.
func (a *acknowledged) count(m *wire.Message) {
	a.left--
	if m != nil {
		if a.first == nil {
			a.first = m
		}
		a.granted = union(a.granted, m.Value(m.Param("notifications")))
	}
	if a.left > 0 || a.first == nil {
		return
	}
	_ = a.out.Event(wire.Event{Data: a.first.WithParams(map[string]jsontext.Value{"notifications": a.granted})}) // a client that is gone hears nothing
	for _, e := range a.early {
		_ = a.out.Event(e) // as above
	}
	a.early = nil
}

// oneAck is one upstream's part of a subscription.
type oneAck struct {
	all    *acknowledged
	target *target
	acked  bool
}

// Head is the same for all.
func (o *oneAck) Head(int, bool) {}

// Event takes the acknowledgement apart from the rest.
func (o *oneAck) Event(e wire.Event) error {
	m, err := wire.Parse(e.Data)
	if err != nil {
		return err
	}
	o.all.mu.Lock()
	defer o.all.mu.Unlock()
	switch {
	case m.Method == "notifications/subscriptions/acknowledged" && !o.acked:
		o.acked = true
		raw, err := wire.Rewrite(m.Raw, []string{"/params/notifications/resourceSubscriptions/*"}, o.target.spaceURI)
		if err != nil {
			return err
		}
		if m, err = wire.Parse(raw); err == nil {
			o.all.count(m)
		}
		return err
	case m.Kind() == wire.Response:
		return nil // the joint answer comes at the end
	case o.all.left > 0:
		o.all.early = append(o.all.early, e)
		return nil
	}
	return (&spaced{out: o.all.out, target: o.target}).Event(e)
}

// end is called when the upstream has ended the subscription.
func (o *oneAck) end() {
	o.all.mu.Lock()
	defer o.all.mu.Unlock()
	if !o.acked {
		o.acked = true
		o.all.count(nil)
	}
}
