package mcp

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/mcp/link"
	"github.com/seed-3ebc6b8a/gatehouse/internal/mcp/wire"
	"github.com/seed-3ebc6b8a/gatehouse/internal/upstream"
	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
)

// target is an upstream that a message is for.
type target struct {
	name   string
	entry  upstream.Entry
	own    bool
	placed *placedServer
}

// target finds an upstream by name, for one agent.
func (f *Front) target(ctx context.Context, p call.Principal, name string) (*target, error) {
	if name == upstream.Own {
		return &target{name: name, own: true}, nil
	}
	f.mu.Lock()
	placed := f.placed[sharedKey{p, name}]
	f.mu.Unlock()
	if placed != nil {
		return &target{name: name, placed: placed}, nil
	}
	list, err := f.opts.Upstreams.List(ctx)
	if err != nil {
		return nil, err
	}
	for _, e := range list {
		if e.Name == name {
			return &target{name: name, entry: e}, nil
		}
	}
	return nil, fmt.Errorf("there is no MCP server %q here", name)
}

// targets lists all upstreams, the gate's own tools first.
func (f *Front) targets(ctx context.Context) ([]*target, error) {
	list, err := f.opts.Upstreams.List(ctx)
	if err != nil {
		return nil, err
	}
	out := []*target{{name: upstream.Own, own: true}}
	for _, e := range list {
		out = append(out, &target{name: e.Name, entry: e})
	}
	return out, nil
}

// live is a conversation with an upstream and what is known from it.
type live struct {
	conn link.Conn

	mu         sync.Mutex
	seen       *survey
	used       time.Time
	credential string
}

func (l *live) silent(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return now.Sub(l.used) > idle
}

// stale forgets what the upstream's tools were.
func (l *live) stale() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = nil
}

// session is a session of the older wire.
type session struct {
	id     string
	who    Who
	only   string
	client string
	caps   jsontext.Value

	mu      sync.Mutex
	lives   map[string]*live
	waiting map[string]chan *wire.Message
	running map[string]context.CancelFunc
	used    time.Time
}

// maxSessions is how many sessions one agent may have at a time.
const maxSessions = 1024

// newSession opens a session for a client that introduces itself.
func (f *Front) newSession(who Who, only string, m *wire.Message) (*session, error) {
	s := &session{
		id: "gh-" + rand.Text(), who: who, only: only, used: time.Now(),
		client: wire.Text(wire.Member(m.Value(m.Param("clientInfo")), "name")), caps: m.Value(m.Param("capabilities")),
		lives: make(map[string]*live), waiting: make(map[string]chan *wire.Message), running: make(map[string]context.CancelFunc),
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for o := range maps.Values(f.sessions) {
		if o.who.Principal.Agent == who.Principal.Agent {
			n++
		}
	}
	if n >= maxSessions {
		return nil, errors.New("this agent has too many sessions open: end some")
	}
	f.sessions[s.id] = s
	return s, nil
}

func (f *Front) session(id string) *session {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sessions[id]
}

func (f *Front) drop(s *session) {
	f.mu.Lock()
	delete(f.sessions, s.id)
	f.mu.Unlock()
	_ = s.Close() // it never began
}

func (s *session) touch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = time.Now()
}

func (s *session) silent(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Sub(s.used) > idle && len(s.running) == 0
}

// Close ends the session's conversations and whatever runs in it.
func (s *session) Close() error {
	s.mu.Lock()
	lives := slices.Collect(maps.Values(s.lives))
	for _, cancel := range s.running {
		cancel()
	}
	s.mu.Unlock()
	var errs []error
	for _, l := range lives {
		errs = append(errs, l.conn.Close())
	}
	return errors.Join(errs...)
}

// begin notes a request, so that the client can cancel it.
func (s *session) begin(ctx context.Context, id string) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running[id] = cancel
	return ctx, func() {
		cancel()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.running, id)
	}
}

func (s *session) cancel(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.running[id]; cancel != nil {
		cancel()
	}
}

// question notes a request of ours to the client and returns where its answer
// will come.
func (s *session) question(id string) (answer <-chan *wire.Message, forget func()) {
	ch := make(chan *wire.Message, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[id] = ch
	return ch, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.waiting, id)
	}
}

// answer takes a client's response if it answers a request of ours.
func (s *session) answer(m *wire.Message) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch, ok := s.waiting[wire.Text(m.Value(m.ID))]
	if ok {
		delete(s.waiting, wire.Text(m.Value(m.ID)))
		ch <- m
	}
	return ok
}

// live returns the conversation with an upstream that the message belongs to.
func (x *exchange) live(ctx context.Context, t *target) (*live, error) {
	credential, err := x.front.credential(ctx, t, x.who.Principal.Agent)
	if err != nil {
		return nil, err
	}
	mu, lives, key := &x.front.mu, map[sharedKey]*live(nil), sharedKey{x.who.Principal, t.name}
	var l *live
	if x.session != nil {
		mu = &x.session.mu
	} else {
		lives = x.front.shared
	}
	mu.Lock()
	defer mu.Unlock()
	if lives == nil {
		l = x.session.lives[t.name]
	} else {
		l = lives[key]
	}
	if l == nil {
		l = &live{credential: credential}
		l.conn = x.front.open(t, x.who.Principal.Agent, x.session == nil)
		if lives == nil {
			x.session.lives[t.name] = l
		} else {
			lives[key] = l
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used = time.Now()
	if k, ok := l.conn.(*link.Keeper); ok && l.credential != credential {
		l.credential, l.seen = credential, nil
		k.Restart() // a process keeps what it was started with
	}
	return l, nil
}

// open makes a conversation with an upstream. It begins when it is first used.
func (f *Front) open(t *target, agent string, shared bool) link.Conn {
	switch spec := &t.entry.Spec; {
	case t.own:
		return link.NewHTTP(link.NewPool(&http.Client{Transport: inProcess{f.own}}), "http://gatehouse/mcp", nil)
	case t.placed != nil:
		return t.placed.conn
	case spec.URL != "" && !spec.SSE:
		return link.NewHTTP(f.pool, spec.URL, func(ctx context.Context) (http.Header, error) { return f.header(ctx, t, agent) })
	case spec.URL != "":
		return link.NewKeeper(func() (link.Conn, error) {
			header, err := f.header(context.Background(), t, agent)
			if err != nil {
				return nil, err
			}
			s, err := link.DialSSE(f.client, spec.URL, header)
			if err != nil {
				return nil, err
			}
			return link.NewPipe(s, shared), nil
		})
	}
	return link.NewKeeper(func() (link.Conn, error) {
		p, err := f.process(t, agent)
		if err != nil {
			return nil, err
		}
		s, err := link.StartProcess(p)
		if err != nil {
			return nil, err
		}
		f.log.Info("an upstream was started", "upstream", t.name, "agent", agent)
		return link.NewPipe(s, shared), nil
	})
}

func (f *Front) credential(ctx context.Context, t *target, agent string) (string, error) {
	if t.own || t.placed != nil {
		return "", nil
	}
	return f.opts.Upstreams.Credential(ctx, t.name, agent)
}

// header is the credential as a header.
func (f *Front) header(ctx context.Context, t *target, agent string) (http.Header, error) {
	secret, err := f.credential(ctx, t, agent)
	if err != nil || secret == "" {
		return nil, err
	}
	if name := t.entry.Spec.CredentialHeader; name != "" {
		return http.Header{http.CanonicalHeaderKey(name): {secret}}, nil
	}
	return http.Header{"Authorization": {"Bearer " + secret}}, nil
}

// usual are the variables that a process gets from the gate's own environment.
var usual = []string{"PATH", "HOME", "LANG", "TERM", "TMPDIR", "USER"}

// process says how an upstream's process is started. It gets none of the
// gate's variables but the usual few.
func (f *Front) process(t *target, agent string) (link.Process, error) {
	spec := &t.entry.Spec
	p := link.Process{Command: spec.Command, Dir: spec.Dir, Stderr: &logWriter{log: f.log, name: t.name}}
	for _, name := range usual {
		if v, ok := os.LookupEnv(name); ok {
			p.Env = append(p.Env, name+"="+v)
		}
	}
	p.Env = append(p.Env, spec.Env...)
	secret, err := f.credential(context.Background(), t, agent)
	if err != nil {
		return p, err
	}
	if secret != "" && spec.CredentialEnv != "" {
		p.Env = append(p.Env, spec.CredentialEnv+"="+secret)
	}
	if !spec.Confined {
		return p, nil
	}
	set := map[string]string{}
	for _, e := range p.Env {
		name, value, _ := cut(e)
		set[name] = value
	}
	p.Confine = &sandbox.Spec{Read: spec.Read, Write: spec.Write, Env: sandbox.Env{Pass: []string{}, Set: set}}
	if len(spec.Net) > 0 {
		p.Confine.Net = sandbox.Net{Mode: sandbox.NetHosts, Allow: spec.Net}
	}
	return p, nil
}
