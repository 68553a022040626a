package mcp

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/mcp/link"
	"github.com/seed-3ebc6b8a/gatehouse/internal/mcp/wire"
)

// All upstreams are shown as one server by giving each a space of names: the
// tool t of the server s is s__t, its prompt p is s__p, its resource u is s+u.
// The gate's own tools keep their names.

var errNoAnswer = errors.New("the upstream did not answer")

const (
	nameSeparator = "__"
	uriSeparator  = "+"
)

func (t *target) spaceName(s string) string {
	if t.own {
		return s
	}
	return t.name + nameSeparator + s
}

func (t *target) spaceURI(s string) string {
	if t.own {
		return s
	}
	return t.name + uriSeparator + s
}

// serveAll answers a message that is for all upstreams or for one of them.
func (x *exchange) serveAll(ctx context.Context) {
	m := x.message
	id := m.Value(m.ID)
	targets, err := x.front.targets(ctx)
	if err != nil {
		x.out.fail(http.StatusOK, id, codeInternal, err.Error())
		return
	}
	switch {
	case m.Kind() == wire.Response:
		x.passAnswer(ctx, targets)
	case m.Kind() == wire.Notification:
		x.broadcast(ctx, targets)
		x.out.Head(http.StatusAccepted, false)
	case m.Method == "ping":
		x.answer(map[string]any{})
	case m.Method == "logging/setLevel":
		x.broadcast(ctx, targets)
		x.answer(map[string]any{})
	case m.Method == "server/discover":
		data, _ := x.merge(ctx, targets)
		x.out.Head(http.StatusOK, false)
		_ = x.out.Event(wire.Event{Data: data}) // a client that is gone hears nothing
	case lists[m.Method] != (listing{}):
		x.listAll(ctx, targets)
	case m.Method == "subscriptions/listen":
		x.subscribeAll(ctx, targets)
	default:
		x.route(ctx, targets)
	}
}

func (x *exchange) answer(result map[string]any) {
	if x.modern {
		result[resultTypeField] = "complete"
	}
	x.out.Head(http.StatusOK, false)
	_ = x.out.Event(wire.Event{Data: response(x.message.Value(x.message.ID), "result", result)}) // as above
}

// route finds the upstream that a request names, and hands it over with the
// name as the upstream knows it.
func (x *exchange) route(ctx context.Context, targets []*target) {
	m := x.message
	var t *target
	change := map[string]jsontext.Value{}
	switch m.Method {
	case "tools/call", "prompts/get":
		var name string
		t, name = byName(targets, m.String("name"))
		change["name"] = wire.Quote(name)
	case "resources/read", "resources/subscribe", "resources/unsubscribe":
		var uri string
		t, uri = byURI(targets, m.String("uri"))
		change["uri"] = wire.Quote(uri)
	case "tasks/get", "tasks/result", "tasks/cancel", "tasks/update":
		var task string
		t, task = byURI(targets, m.String("taskId"))
		change["taskId"] = wire.Quote(task)
	case "completion/complete":
		ref := m.Value(m.Param("ref"))
		var name string
		if t, name = byName(targets, wire.Text(wire.Member(ref, "name"))); wire.Member(ref, "name") != nil {
			change["ref"] = wire.Set(ref, map[string]jsontext.Value{"name": wire.Quote(name)})
		} else {
			t, name = byURI(targets, wire.Text(wire.Member(ref, "uri")))
			change["ref"] = wire.Set(ref, map[string]jsontext.Value{"uri": wire.Quote(name)})
		}
	default:
		status := http.StatusOK
		if x.modern {
			status = http.StatusNotFound
		}
		x.out.fail(status, m.Value(m.ID), codeNoMethod, "there is no method "+m.Method)
		return
	}
	if !t.own {
		var err error
		if m, err = wire.Parse(m.WithParams(change)); err != nil {
			x.out.fail(http.StatusBadRequest, x.message.Value(x.message.ID), codeInvalid, err.Error())
			return
		}
	}
	x.handle(ctx, t, m, &spaced{out: x.out, target: t})
}

// byName finds the upstream of a spaced name; a name without a space is one of
// the gate's own.
func byName(targets []*target, spacedName string) (*target, string) {
	if server, name, ok := strings.Cut(spacedName, nameSeparator); ok {
		if i := slices.IndexFunc(targets, func(t *target) bool { return !t.own && t.name == server }); i >= 0 {
			return targets[i], name
		}
	}
	return targets[0], spacedName
}

func byURI(targets []*target, spacedURI string) (*target, string) {
	if server, uri, ok := strings.Cut(spacedURI, uriSeparator); ok {
		if i := slices.IndexFunc(targets, func(t *target) bool { return !t.own && t.name == server }); i >= 0 {
			return targets[i], uri
		}
	}
	return targets[0], spacedURI
}

// spaced gives what an upstream says its space: addresses of resources, ids of
// tasks, ids of requests to the client.
type spaced struct {
	out    link.Out
	target *target
	mu     *sync.Mutex // where several upstreams write to one client
}

// Head is passed on.
func (s *spaced) Head(status int, stream bool) {
	if s.mu != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
	}
	s.out.Head(status, stream)
}

var uriPlaces = []string{
	"/result/content/*/uri", "/result/content/*/resource/uri", "/result/contents/*/uri",
	"/result/messages/*/content/uri", "/result/messages/*/content/resource/uri",
	"/result/task/taskId", "/result/taskId", "/params/uri", "/params/taskId",
}

// Event passes a message on in its space.
func (s *spaced) Event(e wire.Event) error {
	if s.mu != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
	}
	if s.target.own || len(e.Data) == 0 {
		return s.out.Event(e)
	}
	e.ID = "" // ids of events are of one upstream's stream and mean nothing here
	m, err := wire.Parse(e.Data)
	if err != nil {
		return err
	}
	if m.Kind() == wire.Request && !bytes.Contains(m.Value(m.ID), []byte(inputName)) {
		e.Data = wire.Splice(m.Raw, wire.Edit{Span: m.ID, New: wire.Quote(s.target.name + uriSeparator + string(m.Value(m.ID)))})
	}
	if e.Data, err = wire.Rewrite(e.Data, uriPlaces, s.target.spaceURI); err != nil {
		return err
	}
	return s.out.Event(e)
}

// passAnswer hands a client's answer to the upstream that asked.
func (x *exchange) passAnswer(ctx context.Context, targets []*target) {
	m := x.message
	t, id := byURI(targets, wire.Text(m.Value(m.ID)))
	if t.own {
		return // nobody asked
	}
	raw := wire.Splice(m.Raw, wire.Edit{Span: m.ID, New: []byte(id)})
	if answer, err := wire.Parse(raw); err == nil {
		x.handle(ctx, t, answer, link.Discard{})
	}
	x.out.Head(http.StatusAccepted, false)
}

// broadcast passes a message on to every upstream that the client has talked
// to. What one of them makes of it does not concern the others.
func (x *exchange) broadcast(ctx context.Context, targets []*target) {
	for _, t := range targets {
		l, err := x.live(ctx, t)
		if err == nil {
			err = l.conn.Send(x.as(ctx), x.message, x.forward(x.message), link.Discard{})
		}
		if err != nil {
			x.front.log.Debug("an upstream did not take a message", "upstream", t.name, "method", x.message.Method, "error", err)
		}
	}
}

// listAll puts the lists of all upstreams together. A page ends where an
// upstream's page does; the cursor says which upstream is next.
func (x *exchange) listAll(ctx context.Context, targets []*target) {
	m := x.message
	kind := lists[m.Method]
	at, cursor, err := readCursor(targets, m.String("cursor"))
	if err != nil {
		x.out.fail(http.StatusOK, m.Value(m.ID), codeParams, err.Error())
		return
	}
	items, next := []jsontext.Value{}, ""
	for ; at < len(targets) && next == ""; at++ {
		t := targets[at]
		got := &capture{}
		ask, err := wire.Parse(m.WithParams(map[string]jsontext.Value{"cursor": cursor}))
		if err == nil {
			x.handle(ctx, t, ask, got)
		}
		cursor = nil
		if got.response == nil || got.response.Result.IsZero() {
			continue // it has none, or it is not well; the others are
		}
		list, err := wire.ParseList(got.response, kind.array, kind.key)
		if err != nil {
			x.front.log.Warn("an upstream's list cannot be read", "upstream", t.name, "method", m.Method, "error", err)
			continue
		}
		for _, it := range list.Items {
			items = append(items, t.space(it.Of(list.Raw()), it.Name, kind.key))
		}
		if c := wire.Text(list.Value("nextCursor")); list.Value("nextCursor").Kind() == '"' {
			next = writeCursor(t.name, c)
		}
	}
	result := map[string]any{kind.array: items}
	if next != "" {
		result["nextCursor"] = next
	}
	if x.modern {
		result["ttlMs"], result["cacheScope"] = 0, "private"
	}
	x.answer(result)
}

// space gives an item of a list its spaced name.
func (t *target) space(item jsontext.Value, name, key string) jsontext.Value {
	if t.own {
		return item
	}
	spacedName := t.spaceName(name)
	if key != "name" {
		spacedName = t.spaceURI(name)
	}
	return wire.Set(item, map[string]jsontext.Value{key: wire.Quote(spacedName)})
}

func writeCursor(name, cursor string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(name + "\n" + cursor))
}

func readCursor(targets []*target, cursor string) (at int, inner jsontext.Value, err error) {
	if cursor == "" {
		return 0, nil, nil
	}
	plain, err := base64.RawURLEncoding.DecodeString(cursor)
	name, rest, ok := strings.Cut(string(plain), "\n")
	at = slices.IndexFunc(targets, func(t *target) bool { return t.name == name })
	if err != nil || !ok || at < 0 {
		return 0, nil, errors.New("the cursor is not one of this server")
	}
	return at, wire.Quote(rest), nil
}
