package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/aql"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/mcp/link"
	"github.com/seed-3ebc6b8a/gatehouse/internal/mcp/wire"
	"github.com/seed-3ebc6b8a/gatehouse/internal/upstream"
)

// Upstreams is what the front needs to know about the servers behind it.
type Upstreams interface {
	// List returns the upstreams by name.
	List(ctx context.Context) ([]upstream.Entry, error)
	// Credential returns an agent's credential for an upstream, "" for none.
	Credential(ctx context.Context, name, agent string) (string, error)
	// Compare holds what an upstream says about itself against its pins.
	Compare(ctx context.Context, name string, seen []upstream.Definition) (*upstream.Comparison, error)
	// Withheld says which prompts, resources and templates of an upstream wait to
	// be accepted, and why.
	Withheld(ctx context.Context, name string) (map[upstream.Offer]string, error)
	// Changed counts the changes, so that what was compared can be kept until
	// the next one.
	Changed() uint64
}

// Caller says who makes a request: an agent, in the session with an id, in the
// session of its token or process if that is "", or in a new one if it is
// [NewSession]. An error is answered with 401 or with the status it names.
type Caller func(r *http.Request, session string) (Who, error)

// NewSession asks for a session that nobody has used yet.
const NewSession = "new"

// Who is a caller.
type Who struct {
	Principal call.Principal
	// Held says whether the gate holds the agent.
	Held bool
	// Bound says that the caller's credential is good for one session: a
	// process, or a token that was minted for it.
	Bound bool
}

// Options is what a front is made of.
type Options struct {
	Gate *gate.Gate
	// Tools are the gate's own operations.
	Tools *aql.Tools
	// Resources are what can be read of the gate's own; nil is nothing.
	Resources Resources
	Upstreams Upstreams
	Caller    Caller
	// Seal and Open keep what is handed to clients and comes back.
	Seal func(purpose string, plain []byte) ([]byte, error)
	Open func(purpose string, sealed []byte) ([]byte, error)
	// BaseURL is where the console is, for people who are asked.
	BaseURL string
	Version string
	Log     *slog.Logger
}

// Front serves MCP. It is safe for concurrent use.
type Front struct {
	opts   Options
	log    *slog.Logger
	own    http.Handler
	client *http.Client
	pool   *link.Pool

	mu       sync.Mutex
	stopped  bool
	sessions map[string]*session // of the older wire
	shared   map[sharedKey]*live // of the newer one
	placed   map[sharedKey]*placedServer
	running  sync.WaitGroup // what serves
	ended    endings
	tasks    map[string]*task
	owners   owners // of upstreams' tasks
}

// sharedKey is an agent's conversation with an upstream.
type sharedKey struct {
	principal call.Principal
	name      string
}

// New makes a front.
func New(opts Options) *Front {
	f := &Front{
		opts: opts, log: opts.Log,
		sessions: make(map[string]*session), shared: make(map[sharedKey]*live), placed: make(map[sharedKey]*placedServer),
		ended: endings{some: make(chan struct{}, 1)}, tasks: make(map[string]*task),
	}
	if f.log == nil {
		f.log = slog.New(slog.DiscardHandler)
	}
	f.own = ownTools(opts)
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost, transport.MaxIdleConns, transport.DisableCompression = 256, 0, true
	f.client = &http.Client{Transport: transport, CheckRedirect: link.NoRedirect}
	f.pool = link.NewPool(f.client)
	return f
}

// Run sweeps idle conversations until the context ends, then closes all.
func (f *Front) Run(ctx context.Context) error {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	recorded := make(chan struct{})
	go func() {
		defer close(recorded)
		f.recordOutcomes()
	}()
	for {
		select {
		case <-ctx.Done():
			f.sweep(time.Time{})
			f.running.Wait()
			close(f.ended.some)
			<-recorded
			return nil
		case <-tick.C:
			f.sweep(time.Now())
		}
	}
}

// idle is how long a conversation may be silent before it is closed.
const idle = time.Hour

// sweep closes what was silent for long, or everything at the zero time.
func (f *Front) sweep(now time.Time) {
	f.sweepTasks(now)
	f.pool.Sweep(now)
	var over []io.Closer
	f.mu.Lock()
	f.stopped = now.IsZero()
	for id, s := range f.sessions {
		if now.IsZero() || s.silent(now) {
			over = append(over, s)
			delete(f.sessions, id)
		}
	}
	if now.IsZero() {
		for _, p := range f.placed {
			over = append(over, p.conn)
		}
	}
	for key, l := range f.shared {
		if now.IsZero() || l.silent(now) {
			over = append(over, l.conn)
			delete(f.shared, key)
		}
	}
	f.mu.Unlock()
	for _, c := range over {
		if err := c.Close(); err != nil {
			f.log.Debug("a conversation with an upstream did not end well", "error", err)
		}
	}
}

// maxBody leaves room for the largest arguments and what wraps them.
const maxBody = call.MaxArgs + 64<<10

// ServeHTTP serves /mcp, /mcp/NAME and /mcp/NAME/serve.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !f.enter() {
		http.Error(w, "the gate is stopping", http.StatusServiceUnavailable)
		return
	}
	defer f.running.Done()
	if mode := modeOf(r); mode != "" && mode != single {
		http.Error(w, fmt.Sprintf("there is no mode %q: leave it out for a tool per endpoint, or use mode=single for one", mode), http.StatusBadRequest)
		return
	}
	path := strings.Trim(strings.TrimPrefix(r.URL.Path, "/mcp"), "/")
	name, rest, _ := strings.Cut(path, "/")
	switch {
	case rest == "serve" && r.Method == http.MethodPost:
		f.serveInPlace(w, r, name)
	case rest != "":
		http.NotFound(w, r)
	case r.Method == http.MethodPost:
		f.post(w, r, name)
	case r.Method == http.MethodGet:
		f.get(w, r, name)
	case r.Method == http.MethodDelete:
		f.delete(w, r)
	default:
		w.Header().Set("Allow", "GET, POST, DELETE")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	}
}

// modeOf is what the address asks for, as a rule nothing.
func modeOf(r *http.Request) string {
	if r.URL.RawQuery == "" {
		return ""
	}
	return r.URL.Query().Get("mode")
}

// enter counts a request, unless the front is stopping.
func (f *Front) enter() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped {
		return false
	}
	f.running.Add(1)
	return true
}

// refuseCaller answers a caller that is not known.
func (f *Front) refuseCaller(w http.ResponseWriter, err error) {
	status := http.StatusUnauthorized
	var s interface{ HTTPStatus() int }
	if errors.As(err, &s) {
		status = s.HTTPStatus()
	}
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+f.opts.BaseURL+MetadataPath+`"`)
	}
	http.Error(w, err.Error(), status)
}

// post serves one message.
func (f *Front) post(w http.ResponseWriter, r *http.Request, name string) {
	if kind := r.Header.Get("Content-Type"); kind != jsonMedia && !isJSON(kind) {
		http.Error(w, "the message must be application/json", http.StatusUnsupportedMediaType)
		return
	}
	raw, err := readBody(w, r)
	if err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			http.Error(w, "the message is too large", http.StatusRequestEntityTooLarge)
			return
		}
		http.Error(w, "the message could not be read", http.StatusBadRequest)
		return
	}
	x := &exchange{front: f, header: r.Header, only: name, out: &httpOut{w: w}}
	if id := r.Header.Get("Mcp-Session-Id"); id != "" {
		x.session = f.session(id)
	}
	if !x.identify(w, r) {
		return
	}
	m, err := wire.Parse(raw)
	if err != nil {
		code := codeParse
		if errors.Is(err, wire.ErrBatch) {
			code = codeInvalid
		}
		x.out.fail(http.StatusBadRequest, nil, code, err.Error())
		return
	}
	x.message = m
	if !x.classify() {
		return
	}
	if r.Header.Get("Mcp-Session-Id") != "" && x.session == nil && !x.modern {
		http.Error(w, "there is no such session; begin again with initialize", http.StatusNotFound)
		return
	}
	x.serve(r.Context())
}

const jsonMedia = "application/json"

// isJSON is for what says more than the media type.
func isJSON(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && kind == jsonMedia
}

// readBody reads a message, into as much room as it says it takes.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body := http.MaxBytesReader(w, r.Body, maxBody)
	if r.ContentLength < 0 || r.ContentLength > maxBody {
		return io.ReadAll(body)
	}
	raw := make([]byte, r.ContentLength)
	_, err := io.ReadFull(body, raw)
	return raw, err
}

// identify finds out who calls, and that the session is theirs.
func (x *exchange) identify(w http.ResponseWriter, r *http.Request) bool {
	gateSession := ""
	if x.session != nil {
		gateSession = x.session.who.Principal.Session
	}
	who, err := x.front.opts.Caller(r, gateSession)
	if err != nil {
		x.front.refuseCaller(w, err)
		return false
	}
	if x.session != nil && x.session.who.Principal != who.Principal {
		http.Error(w, "there is no such session; begin again with initialize", http.StatusNotFound)
		return false
	}
	x.who, x.request = who, r
	return true
}

// get serves the stream of messages that belong to no request.
func (f *Front) get(w http.ResponseWriter, r *http.Request, name string) {
	x := &exchange{front: f, header: r.Header, only: name, out: &httpOut{w: w}}
	if id := r.Header.Get("Mcp-Session-Id"); id != "" {
		x.session = f.session(id)
	}
	if !x.identify(w, r) {
		return
	}
	switch {
	case r.Header.Get("Mcp-Session-Id") == "":
		w.Header().Set("Allow", "POST")
		http.Error(w, "a stream needs a session", http.StatusMethodNotAllowed)
	case x.session == nil:
		http.Error(w, "there is no such session; begin again with initialize", http.StatusNotFound)
	default:
		err := x.session.listen(r.Context(), x, r.Header.Get("Last-Event-ID"))
		if err != nil && !x.out.begun {
			status := http.StatusBadGateway
			if errors.Is(err, link.ErrNoStream) {
				w.Header().Set("Allow", "POST, DELETE")
				status = http.StatusMethodNotAllowed
			}
			http.Error(w, err.Error(), status)
		}
	}
}

// delete ends a session.
func (f *Front) delete(w http.ResponseWriter, r *http.Request) {
	x := &exchange{front: f, header: r.Header, out: &httpOut{w: w}}
	id := r.Header.Get("Mcp-Session-Id")
	if x.session = f.session(id); x.session == nil {
		http.Error(w, "there is no such session", http.StatusNotFound)
		return
	}
	if !x.identify(w, r) {
		return
	}
	f.mu.Lock()
	delete(f.sessions, id)
	f.mu.Unlock()
	if err := x.session.Close(); err != nil {
		f.log.Debug("a session's upstream did not end well", "error", err)
	}
	w.WriteHeader(http.StatusNoContent)
}
