package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
)

// DialFunc opens a connection to an address that was checked.
type DialFunc func(ctx context.Context, to netip.AddrPort) (net.Conn, error)

// ResolveFunc looks a name up.
type ResolveFunc func(ctx context.Context, name string) ([]netip.Addr, error)

// Request is a wish to reach a host nobody declared.
type Request struct {
	Host    string
	Port    uint16
	Command string // what is running
}

// Answer is a person's word on a Request. The zero value refuses.
type Answer int

// The answers.
const (
	Refuse Answer = iota
	AllowOnce
	AllowSession
)

// Decision is what became of one attempt.
type Decision struct {
	Host    string // as asked for, normalised if it could be
	Port    uint16
	Addr    netip.Addr // the address dialled, if it came to that
	Allowed bool
	Asked   bool
	Reason  string
}

// Target is host and port as one text; the port is left out where none was
// understood.
func (d Decision) Target() string {
	if d.Port == 0 {
		return d.Host
	}
	return hostPort(d.Host, d.Port)
}

// MaxAsks is how often one run may put a question to a person.
const MaxAsks = 3

// Config is a Proxy's policy. The zero value refuses everything.
type Config struct {
	Rules *Rules
	// Public lets every public address through that is not denied.
	Public bool
	// Refuse are the gate's own addresses, HOST:PORT, refused even if declared.
	// An unspecified address stands for every address of this machine.
	Refuse  []string
	Command string
	Ask     func(ctx context.Context, r Request) Answer
	// OnDecision is told about every attempt, from any goroutine.
	OnDecision func(Decision)
	// Dial and Resolve default to the host's own.
	Dial    DialFunc
	Resolve ResolveFunc
}

// Proxy serves one run.
type Proxy struct {
	cfg  Config
	own  []netip.AddrPort
	ownN map[string]bool // by name and port
	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	conns   map[net.Conn]bool
	lis     net.Listener
	asks    int
	session map[string]bool // host:port a person allowed for the session
	asking  map[string]*question
}

type question struct {
	done   chan struct{}
	answer Answer
}

// New makes a Proxy. Addresses of the gate that cannot be read are an error:
// leaving one out would open it.
func New(cfg Config) (*Proxy, error) {
	if cfg.Rules == nil {
		cfg.Rules = &Rules{}
	}
	if cfg.Dial == nil {
		cfg.Dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", to.String())
		}
	}
	if cfg.Resolve == nil {
		cfg.Resolve = func(ctx context.Context, name string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", name)
		}
	}
	p := &Proxy{cfg: cfg, conns: map[net.Conn]bool{}, session: map[string]bool{}, asking: map[string]*question{}, ownN: map[string]bool{}}
	for _, text := range cfg.Refuse {
		host, port, err := splitHostPort(text)
		if err != nil {
			return nil, fmt.Errorf("the gate's own address %q: %w", text, err)
		}
		if a, err := netip.ParseAddr(host); err == nil {
			p.own = append(p.own, netip.AddrPortFrom(embedded(a), port))
			continue
		}
		p.ownN[hostPort(host, port)] = true
	}
	p.ctx, p.stop = context.WithCancel(context.Background())
	return p, nil
}

// Serve accepts until the listener or the Proxy is closed.
func (p *Proxy) Serve(l net.Listener) error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return net.ErrClosed
	}
	p.lis = l
	p.mu.Unlock()
	for {
		c, err := l.Accept()
		if err != nil {
			if p.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return nil
			}
			return err
		}
		if !p.track(c) {
			_ = c.Close()
			return nil
		}
		p.wg.Go(func() {
			defer p.untrack(c)
			p.serveConn(c)
		})
	}
}

// Close ends every connection and waits for their goroutines.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	p.stop()
	for c := range p.conns {
		_ = c.Close()
	}
	if p.lis != nil {
		_ = p.lis.Close()
	}
	p.mu.Unlock()
	p.wg.Wait()
	return nil
}

func (p *Proxy) track(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.conns[c] = true
	return true
}

func (p *Proxy) untrack(c net.Conn) {
	_ = c.Close()
	p.mu.Lock()
	delete(p.conns, c)
	p.mu.Unlock()
}

// target is a destination after the decision.
type target struct {
	host  string // normalised name or address
	port  uint16
	addrs []netip.Addr // checked; empty means refused
	why   string
}

// decide judges a destination. The order matters: deny before allow, name
// before lookup, address before dial.
func (p *Proxy) decide(host string, port uint16) target {
	t := target{host: host, port: port}
	literal, name, err := parseHost(host)
	if err != nil {
		return p.refuse(t, err.Error(), false)
	}
	if literal.IsValid() {
		t.host = literal.String()
	} else {
		t.host = name
	}
	for _, r := range p.cfg.Rules.deny {
		if r.port(port) && (r.matchName(name) && name != "" || literal.IsValid() && r.matchAddr(literal)) {
			return p.refuse(t, "denied by "+r.text, false)
		}
	}
	if p.isOwn(name, literal, port) {
		return p.refuse(t, "the gate's own address", false)
	}
	asked := false
	if !p.declared(name, literal, port) {
		ok := p.cfg.Public && (name != "" && name != "localhost" || literal.IsValid() && class(literal) == "")
		if !ok {
			if ok, asked = p.ask(t.host, port); !ok {
				return p.refuse(t, "not declared", asked)
			}
		}
	}
	addrs := []netip.Addr{literal}
	if !literal.IsValid() {
		if addrs, err = p.cfg.Resolve(p.ctx, name); err != nil {
			return p.refuse(t, "no address: "+err.Error(), asked)
		}
	}
	why := "no address"
	for _, a := range addrs {
		if bad := p.badAddr(name, embedded(a), port); bad != "" {
			why = bad
			continue
		}
		t.addrs = append(t.addrs, a.Unmap())
	}
	// One bad address among good ones is how a name is rebound between two
	// lookups; the good ones are still what the name said.
	if len(t.addrs) == 0 {
		return p.refuse(t, why, asked)
	}
	p.tell(Decision{Host: t.host, Port: port, Addr: t.addrs[0], Allowed: true, Asked: asked})
	return t
}

func (p *Proxy) refuse(t target, why string, asked bool) target {
	t.addrs, t.why = nil, why
	p.tell(Decision{Host: t.host, Port: t.port, Asked: asked, Reason: why})
	return t
}

func (p *Proxy) tell(d Decision) {
	if p.cfg.OnDecision != nil {
		p.cfg.OnDecision(d)
	}
}

func (p *Proxy) declared(name string, literal netip.Addr, port uint16) bool {
	for _, r := range p.cfg.Rules.allow {
		if !r.port(port) {
			continue
		}
		if name != "" && r.matchName(name) || literal.IsValid() && r.matchAddr(literal) {
			return true
		}
	}
	return false
}

// badAddr says why an address may not be dialled, or "".
func (p *Proxy) badAddr(name string, a netip.Addr, port uint16) string {
	for _, r := range p.cfg.Rules.deny {
		if r.port(port) && r.matchAddr(a) {
			return "denied by " + r.text
		}
	}
	if p.isOwn("", a, port) {
		return "the gate's own address"
	}
	what := class(a)
	if what == "" {
		return ""
	}
	for _, r := range p.cfg.Rules.allow {
		if !r.port(port) || !r.matchAddr(a) {
			continue
		}
		// A metadata service hands out credentials: it takes its own address,
		// not a range around it, to declare it.
		if what != "metadata" || r.net.Bits() == a.BitLen() {
			return ""
		}
	}
	if what == "loopback" && name == "localhost" && p.declared(name, netip.Addr{}, port) {
		return ""
	}
	return what + " address"
}

func (p *Proxy) isOwn(name string, a netip.Addr, port uint16) bool {
	if name != "" && p.ownN[hostPort(name, port)] {
		return true
	}
	if !a.IsValid() {
		return false
	}
	for _, o := range p.own {
		if o.Port() != port {
			continue
		}
		if o.Addr() == a || o.Addr().IsUnspecified() && localAddr(a) {
			return true
		}
	}
	return false
}

// localAddr reports whether an address is one of this machine's.
func localAddr(a netip.Addr) bool {
	if a.IsLoopback() || a.IsUnspecified() {
		return true
	}
	list, err := net.InterfaceAddrs()
	if err != nil {
		return true // not knowing must not open the gate's own port
	}
	for _, ia := range list {
		if n, ok := ia.(*net.IPNet); ok {
			if own, ok := netip.AddrFromSlice(n.IP); ok && own.Unmap() == a {
				return true
			}
		}
	}
	return false
}

// ask puts the question to a person, once per destination at a time and at
// most MaxAsks times per run.
func (p *Proxy) ask(host string, port uint16) (ok, asked bool) {
	if p.cfg.Ask == nil {
		return false, false
	}
	key := hostPort(host, port)
	p.mu.Lock()
	if p.session[key] {
		p.mu.Unlock()
		return true, true
	}
	if q := p.asking[key]; q != nil {
		p.mu.Unlock()
		select {
		case <-q.done:
			return q.answer == AllowSession, true
		case <-p.ctx.Done():
			return false, true
		}
	}
	if p.asks >= MaxAsks {
		p.mu.Unlock()
		return false, false
	}
	p.asks++
	q := &question{done: make(chan struct{})}
	p.asking[key] = q
	p.mu.Unlock()
	q.answer = p.cfg.Ask(p.ctx, Request{Host: host, Port: port, Command: p.cfg.Command})
	p.mu.Lock()
	delete(p.asking, key)
	if q.answer == AllowSession {
		p.session[key] = true
	}
	p.mu.Unlock()
	close(q.done)
	return q.answer == AllowOnce || q.answer == AllowSession, true
}

// dial connects to the first of the checked addresses that answers. There is
// no second lookup that could say something else.
func (p *Proxy) dial(t target) (net.Conn, error) {
	err := errors.New("no address")
	for _, a := range t.addrs {
		var c net.Conn
		if c, err = p.cfg.Dial(p.ctx, netip.AddrPortFrom(a, t.port)); err == nil {
			if !p.track(c) {
				_ = c.Close()
				return nil, net.ErrClosed
			}
			within(c)
			return c, nil
		}
	}
	return nil, err
}
