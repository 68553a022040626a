package daemon

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seed-3ebc6b8a/gatehouse/internal/activation"
	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/approval"
	"github.com/seed-3ebc6b8a/gatehouse/internal/aql"
	"github.com/seed-3ebc6b8a/gatehouse/internal/audit"
	"github.com/seed-3ebc6b8a/gatehouse/internal/autonomy"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/console"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/flight"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/job"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/library"
	"github.com/seed-3ebc6b8a/gatehouse/internal/mcp"
	"github.com/seed-3ebc6b8a/gatehouse/internal/observe"
	"github.com/seed-3ebc6b8a/gatehouse/internal/place"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
	"github.com/seed-3ebc6b8a/gatehouse/internal/restore"
	"github.com/seed-3ebc6b8a/gatehouse/internal/rulebook"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/upstream"
)

// Options is how a daemon is started.
type Options struct {
	Place place.Place
	// Listen is the TCP address of the console and the API.
	Listen string
	// Socket is the unix socket; the place's own, for its user alone, if "". A
	// socket elsewhere is for everyone: who is at it, the kernel says.
	Socket string
	// Database is a postgres:// URL; "" is the embedded SQLite.
	Database string
	// Node names this daemon among those that share a database.
	Node string
	// WrapDriver interposes on the database driver, for tests that count or
	// fail its statements.
	WrapDriver func(driver.Connector) driver.Connector
	// PolicyFile is the user's policy file; the place's own if "".
	PolicyFile string
	// Isolation is what the operator states about the agents' environment.
	Isolation string
	// Issuer is an OpenID Connect issuer whose tokens for the MCP endpoint are
	// taken besides the gate's own; "" takes none.
	Issuer  string
	Version string
	Log     *slog.Logger
	// Terminal gets the sign-in link of the first approver; nil where there is
	// no controlling terminal, and then nobody gets it.
	Terminal io.Writer
	// Launcher returns the words that start the gatehouse command which runs
	// confined what hosts are given in place of a command; none, or nil, if
	// nothing can be confined here.
	Launcher func() []string
	// Ready is called once the listeners answer, with the console's address.
	Ready func(url string)
}

// daemon is a running gate.
type daemon struct {
	opts      Options
	alone     bool // the lock of the data directory is ours
	log       *slog.Logger
	store     *store.Store
	keys      *keyring.Keyring
	logKeys   *audit.Keys
	sessions  *session.Registry
	desk      *approval.Desk
	autonomy  *autonomy.Keeper
	channels  *approval.Channels
	audit     *audit.Log
	sequencer *audit.Sequencer
	book      *rulebook.Book
	machine   *observe.Machine
	library   *library.Library
	keeper    *activation.Keeper
	record    *recorder
	state     *state
	changes   *admin.Changes
	notifier  *approval.Notifier
	restore   *restore.Store
	gate      *gate.Gate
	admin     *admin.Desk
	tools     *aql.Tools
	server    *api.Server
	upstreams *upstreams
	front     *mcp.Front
	jobs      *job.Jobs
	dispatch  *dispatch.Service
	flight    *flight.Recorder
	retention time.Duration // of jobs and flight records
	baseURL   string
}

// Run serves until the context ends.
func Run(ctx context.Context, opts Options) error {
	if err := os.MkdirAll(opts.Place.Home, 0o700); err != nil {
		return fmt.Errorf("the data directory cannot be made: %w", err)
	}
	unlock, err := store.Lock(opts.Place.Home)
	if err != nil {
		return err
	}
	defer unlock()
	stopTracing, err := startTracing(ctx, opts.Version)
	if err != nil {
		return err
	}
	defer stopTracing()
	// The heap is small and calls are short-lived: collect less often.
	debug.SetGCPercent(400)
	hide() // whoever runs as the same user must not read our memory

	tcp, err := net.Listen("tcp", opts.Listen)
	if err != nil {
		return fmt.Errorf("%s cannot be listened on (--listen takes another address): %w", opts.Listen, err)
	}
	defer tcp.Close()
	unix, err := listenSocket(&opts)
	if err != nil {
		return err
	}
	defer unix.Close()

	d := &daemon{opts: opts, alone: true, log: opts.Log, baseURL: "http://" + tcp.Addr().String(), changes: admin.NewChanges(), channels: approval.NewChannels()}
	d.channels.Linger = 20 * time.Second
	if err := d.open(ctx, tcp.Addr().String()); err != nil {
		return err
	}
	defer d.store.Close()
	defer d.library.Close()
	return d.serve(ctx, tcp, unix)
}

// listenSocket takes over the socket that a service manager opened, or opens
// one.
func listenSocket(opts *Options) (net.Listener, error) {
	if l, err := inherited(); l != nil || err != nil {
		return l, err
	}
	if opts.Socket == "" {
		return listenUnix(opts.Place.Socket(), 0o600)
	}
	return listenUnix(opts.Socket, 0o666)
}

// inherited is the socket that systemd passed on, nil if it passed none.
func inherited() (net.Listener, error) {
	if os.Getenv("LISTEN_PID") != strconv.Itoa(os.Getpid()) || os.Getenv("LISTEN_FDS") == "0" {
		return nil, nil
	}
	const first = 3 // after standard input, output and error
	f := os.NewFile(first, "gatehouse.sock")
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("the socket that the service manager passed on cannot be used: %w", err)
	}
	if u, ok := l.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false) // it is not ours, and is used again
		return u, nil
	}
	return nil, errors.Join(errors.New("what the service manager passed on is no unix socket"), l.Close())
}

// listenUnix listens on the daemon's own socket. A socket that a dead daemon
// left behind is removed: the lock is ours.
func listenUnix(path string, mode os.FileMode) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("an old socket is in the way: %w", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("the unix socket cannot be made (its path may be too long): %w", err)
	}
	if err := os.Chmod(path, mode); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// open opens everything that is durable and wires it up.
func (d *daemon) open(ctx context.Context, addr string) (err error) {
	home := d.opts.Place.Home
	so := store.Options{Dir: home, DSN: d.opts.Database, Node: d.opts.Node, Alone: d.alone, Logger: d.log, Wrap: d.opts.WrapDriver}
	if d.keys, err = keyring.Load(d.opts.Place.Keys(), nil); err != nil {
		return err
	}
	if d.logKeys, err = audit.LoadOrCreate(d.opts.Place.Keys()); err != nil {
		return err
	}
	if err := os.WriteFile(d.opts.Place.PublicKey(), []byte(d.logKeys.Public()+"\n"), 0o644); err != nil {
		return err
	}
	if d.store, err = store.Open(ctx, so); err != nil {
		return err
	}
	if err := d.store.ClaimNode(ctx); err != nil {
		return errors.Join(err, d.store.Close())
	}
	if err := d.keys.Bind(ctx, d.store); err != nil {
		return errors.Join(err, d.store.Close())
	}
	d.desk, d.autonomy, d.audit = approval.New(d.keys), autonomy.New(d.keys), audit.New(d.store)
	d.sessions = session.New(d.keys, &session.Options{Paused: d.paused})
	d.autonomy.Changed = d.sessions.Refresh
	if err := d.store.Write(ctx, d.sessions.Prepare); err != nil {
		return errors.Join(err, d.store.Close())
	}
	d.record = newRecorder(d.log)
	if err := d.openPolicy(ctx); err != nil {
		return errors.Join(err, d.store.Close())
	}
	if err := d.openElements(); err != nil {
		return errors.Join(err, d.store.Close())
	}
	if err := d.openJobs(ctx, os.Getenv); err != nil {
		return errors.Join(err, d.store.Close())
	}
	if err := d.wire(addr); err != nil {
		return errors.Join(err, d.store.Close())
	}
	d.stamp(ctx)
	closed, err := d.state.recover(ctx)
	if err != nil {
		return errors.Join(err, d.store.Close())
	}
	if _, err := d.keeper.Recover(ctx); err != nil {
		// Nothing in a batch loosens, so this keeps nobody from starting; it is
		// tried again at every start.
		d.log.Error("a batch that an earlier run did not finish could not be taken back", "error", err)
	}
	if closed > 0 {
		d.log.Warn("calls of an earlier run had no known end; their outcome is unknown", "calls", closed)
	}
	return nil
}

func (d *daemon) openPolicy(ctx context.Context) (err error) {
	user := d.opts.PolicyFile
	if user == "" {
		user = d.opts.Place.Policy()
	}
	if user, err = filepath.Abs(user); err != nil {
		return err
	}
	threshold, err := dispatchPolicy(os.Getenv)
	if err != nil {
		return err
	}
	homeDir, _ := os.UserHomeDir() // without one, policies that use "~" do not load and say so
	d.book, err = rulebook.Open(ctx, rulebook.Options{
		Store: d.store, Keys: d.keys, Sessions: d.sessions, Log: d.log, Record: d.record.act,
		Sources:   []rulebook.Source{{Scope: policy.ScopeMachine, Path: place.MachinePolicy}, {Scope: policy.ScopeUser, Path: user}},
		Knowledge: d.opts.Place.Knowledge(),
		Compile:   policy.Options{Home: homeDir, Isolation: d.opts.Isolation, DispatchPolicy: threshold},
	})
	if err != nil {
		return err
	}
	d.record.hideFields(d.book.Current().Settings.RedactFields)
	d.machine = &observe.Machine{Home: homeDir, Own: facts.Own{Paths: d.ownPaths(user), Settings: place.AgentSettings, ProjectFiles: []string{place.ProjectPolicy, place.ProjectTools}, PID: os.Getpid()}}
	return nil
}

// ownPaths are the gate's own files.
func (d *daemon) ownPaths(userPolicy string) []string {
	paths := []string{d.opts.Place.Home, place.MachinePolicy, place.Tools(place.MachinePolicy), userPolicy, place.Tools(userPolicy)}
	if d.opts.Socket != "" {
		paths = append(paths, d.opts.Socket)
	}
	return paths
}

// wire connects the parts. Nothing runs yet.
func (d *daemon) wire(addr string) error {
	d.machine.Own.Listeners = []string{addr}
	d.state = &state{store: d.store, desk: d.desk, sessions: d.sessions, keeper: d.autonomy, record: d.record,
		strikes: func() int { return d.book.Current().Settings.Strikes() }, last: make(map[lastKey]gate.Standing)}
	d.notifier = d.newNotifier()
	d.sequencer = audit.NewSequencer(d.audit, d.sequencing())
	d.restore = d.openRestore()
	d.gate = gate.New(gate.Options{
		Policy: d.book.For, Observer: observer{d.machine, d.keeper}, State: d.state, Asker: d, Keeper: restorer{d.restore}, Describe: d.record.describe, NewID: d.newID, Log: d.log,
		Scope: policy.Holds, Took: d.record.took,
	})
	d.upstreams = &upstreams{store: d.store, registry: upstream.New(d.keys), record: d.record.act}
	d.admin = admin.New(admin.Options{
		Store: d.store, Approval: d.desk, Sessions: d.sessions, Channels: d.channels, Log: d.audit, Rules: d.book, Elements: d.keeper, Restore: d.restore, Gate: d.gate, Autonomy: d.autonomy,
		Performable: func(c *call.Call) error { return d.tools.Check(c) },
		Upstreams:   d.upstreams.registry,
		Jobs:        d.jobs,
		Trace:       d.trace,
		File:        d.fileEdited,
		Record:      d.record.act,
		Checkpoint: func(ctx context.Context) error {
			_, err := d.sequencer.Checkpoint(ctx)
			return err
		},
		Limits:  d.limits,
		BaseURL: d.baseURL,
	}, d.changes)
	d.openDispatch()
	if err := d.openTools(); err != nil {
		return err
	}
	hosts, doors := hostsOf(addr), &doors{store: d.store, sessions: d.sessions, desk: d.admin, book: d.book, keys: d.keys, issuer: newIssuer(d.opts.Issuer, d.baseURL+"/mcp"), around: d.jobs.Around}
	d.server = api.New(api.Options{
		Gate: d.gate, Desk: d.admin, Doors: doors, Operations: d.tools,
		MCP: d.mcp, MCPMetadata: mcp.Metadata(d.baseURL, d.issuers()),
		Hook:    d.newHooks(),
		Tools:   d.useTool,
		Seen:    d.seen,
		Health:  d.health,
		Process: d.startProcess,
		Console: console.New(console.Options{Desk: d.admin, Hosts: hosts, Key: d.keys.Row("console").Text("pages").Sum(), Log: d.log}),
		Metrics: d.metrics(),
		Hosts:   hosts, Log: d.log,
	})
	return nil
}

// hostsOf lists the names under which a listener may be addressed.
func hostsOf(addr string) []string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return []string{addr}
	}
	hosts := []string{addr}
	if ip := net.ParseIP(host); ip != nil && (ip.IsLoopback() || ip.IsUnspecified()) {
		for _, name := range []string{"localhost", "127.0.0.1", "[::1]"} {
			hosts = append(hosts, name+":"+port)
		}
	}
	return hosts
}

// serve runs everything until the context ends or a part fails.
func (d *daemon) serve(ctx context.Context, listeners ...net.Listener) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return d.sequencer.Run(ctx) })
	g.Go(func() error { return d.notifier.Run(ctx) })
	g.Go(func() error { return d.watchState(ctx) })
	g.Go(func() error { return d.watchPolicy(ctx) })
	g.Go(func() error { return d.upstreams.watch(ctx, d.stamp) })
	g.Go(func() error { return d.front.Run(ctx) })
	g.Go(func() error { return d.jobs.Run(ctx) })
	g.Go(func() error { return d.tidyFlight(ctx) })
	g.Go(func() error { return d.watchStopped(ctx) })
	g.Go(func() error { return d.watchElements(ctx) })
	g.Go(func() error { return d.server.Serve(ctx, listeners...) })
	if err := d.welcome(ctx); err != nil {
		stop()
		return errors.Join(err, g.Wait())
	}
	if d.opts.Ready != nil {
		d.opts.Ready(d.baseURL)
	}
	err := g.Wait()
	if errors.Is(err, context.Canceled) || errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// welcome shows the way in to the first approver, on the terminal and nowhere
// else. Once someone is enrolled it shows nothing, ever again.
func (d *daemon) welcome(ctx context.Context) error {
	enrolled, err := d.admin.Enrolled(ctx)
	if err != nil || enrolled || d.opts.Terminal == nil {
		return err
	}
	name := "me"
	if u, err := user.Current(); err == nil {
		name = approval.NameFrom(u.Username, name)
	}
	link, err := d.admin.FirstLink(name)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(d.opts.Terminal, "\n  Nobody is enrolled yet. Become the first approver (%s) by opening this link,\n  once, within ten minutes:\n\n    %s\n\n", name, link)
	return err
}

// limits are the limits in force.
func (d *daemon) limits() approval.Limits { return limits(&d.book.Current().Settings) }

// newID makes an id for a call.
func (d *daemon) newID() string {
	id, err := keyring.NewTimedID("c_", time.Now(), d.keys.Random())
	if err != nil {
		// Without randomness there is no safe id; the call fails on the empty
		// one when it is opened.
		d.log.Error("no randomness", "error", err)
		return ""
	}
	return id
}

// fileEdited puts a person's edit of a call before people.
func (d *daemon) fileEdited(tx *store.Tx, r *gate.Request) (string, error) {
	got, _, err := d.state.file(tx, r)
	if err != nil {
		return "", err
	}
	return got.ID, nil
}

// watchState wakes up whoever waits when the state changes, here or on
// another node, and lets requests expire in time for those who look.
func (d *daemon) watchState(ctx context.Context) error {
	changes := d.store.Subscribe(ctx, approval.Topic)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case _, ok := <-changes:
			if !ok {
				return nil
			}
			d.changes.Tell()
			d.notifier.CloseSettled(d.settled(ctx))
		case <-tick.C:
			d.notifier.CloseSettled(d.settled(ctx))
			if err := d.expire(ctx); err != nil {
				d.log.Warn("requests could not be expired", "error", err)
			}
		}
	}
}

// expire marks requests whose time is over. It writes only when there is one:
// expiry itself is judged wherever a request is used.
func (d *daemon) expire(ctx context.Context) error {
	due := false
	err := d.store.Read(ctx, func(tx *store.Tx) (err error) {
		due, err = d.desk.Due(tx)
		return err
	})
	if err != nil || !due {
		return err
	}
	return d.store.Write(ctx, func(tx *store.Tx) error {
		expired, err := d.desk.Expire(tx)
		if err != nil {
			return err
		}
		for _, r := range expired {
			if err := d.record.act(tx, admin.Expired(r)); err != nil {
				return err
			}
		}
		return nil
	})
}
