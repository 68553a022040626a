package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/sandbox/egress"
)

// Backend names a way of confining.
type Backend string

// The back-ends. Auto takes the first that holds what the Spec needs.
const (
	Auto       Backend = ""
	Bubblewrap Backend = "bubblewrap"
	Landlock   Backend = "landlock"
	Firejail   Backend = "firejail"
	Podman     Backend = "podman"
	Docker     Backend = "docker"
	Wasm       Backend = "wasm"
	Seatbelt   Backend = "seatbelt"
	Unconfined Backend = "unconfined"
)

// Spec is what a command may do. The zero value of every field is the
// tightest: no network, no writes, reads of the working directory only.
type Spec struct {
	// Command is the program and its arguments; a bare name is looked up in
	// the PATH the command will have.
	Command []string
	// Dir is the working directory; empty means the caller's.
	Dir string

	// Read and Write are absolute paths or paths relative to Dir. A path names
	// itself and, if it is a directory, all beneath; DIR/** says the same. Read
	// takes any other glob too, expanded when the run starts. Write refuses what
	// it cannot hold exactly. Empty Read means the working directory.
	Read, Write []string
	// Private are directories that it may write and in which nobody works later,
	// such as a home of its own: names mean nothing there, so only what
	// Protected names by its path stays unchanged.
	Private []string
	// Protected adds paths or name suffixes (like ".git/hooks") that stay
	// unchanged inside writable roots; Unprotected lifts entries of
	// DefaultProtected by their exact spelling.
	Protected, Unprotected []string
	// UnixSockets are host sockets the command may connect to, by path.
	UnixSockets []string

	// Files are small files of the caller's making that the command finds at
	// their paths and cannot change, by content. In a declared root one covers a
	// file that is there.
	Files map[string]string
	// Channel, when not nil, is a way from inside to the caller.
	Channel *Channel

	Net    Net
	Env    Env
	Limits Limits
	// NoExec: the command starts no other program, nor itself again.
	NoExec bool

	// Backend forces one; Auto chooses. Require adds guarantees to those that
	// follow from the Spec; Without waives some, which the Result records.
	Backend          Backend
	Require, Without Guarantee
	// AllowUnconfined lets the command run without any sandbox when no back-end
	// will do. It is loud: a warning goes to Stderr and the Result says so.
	AllowUnconfined bool

	// Overlay keeps every change in a layer of its own.
	Overlay Overlay
	// TTY, when not nil, gives the command a terminal of its own.
	TTY *Terminal

	// Stdin is empty when nil. Stdout and Stderr are captured in the Result
	// when nil.
	Stdin          io.Reader
	Stdout, Stderr io.Writer

	// Image is the container image for Podman and Docker; empty means the
	// host's root, read-only.
	Image string
	// Launcher is the second-stage program; empty means gatehouse-launch beside
	// the running program, or the running program itself (see MaybeLaunch).
	Launcher string
	// Quarantine is where protected entries that appeared during the run are
	// moved; empty means a fresh temporary directory.
	Quarantine string
	// Before is asked when the sandbox stands and nothing of the command has
	// run. An error ends the run before it begins, under every back-end.
	Before func(Standing) error
	// OnFact is called for every refusal as it happens, from any goroutine.
	OnFact func(Refusal)
}

// Standing is a sandbox in which a command is about to start.
type Standing struct {
	Backend    Backend
	Guarantees Guarantee // achieved and proven
	Path       string    // the program, as it was found
	Dir        string
	// Process is the one that waits to become the command, 0 where the back-end
	// starts none before it.
	Process int
	// Read and Write are the declared roots, canonical; DIR/** is a tree.
	Read, Write []string
}

// StoppedError: Spec.Before did not let the command start.
type StoppedError struct{ Err error }

// Error says why in Before's own words.
func (e *StoppedError) Error() string { return e.Err.Error() }

// Unwrap returns Before's error.
func (e *StoppedError) Unwrap() error { return e.Err }

// Channel is a unix socket inside the sandbox whose listening descriptor is
// passed out: whoever connects to Path in there reaches Serve out here, and
// nothing else of the host. AF_UNIX is open inside, as with UnixSockets.
type Channel struct {
	// Path lies directly in /run, which is the sandbox's own.
	Path string
	// Serve accepts on the listener until it is closed, when the run has ended.
	Serve func(net.Listener)
}

// NetMode is the network stance.
type NetMode int

// The stances. NetPublic lets the proxy reach any public address; it never
// means the host's own network.
const (
	NetNone NetMode = iota
	NetHosts
	NetPublic
)

// Net is the network policy of a run.
type Net struct {
	Mode NetMode
	// Allow and Deny are host patterns (see package egress). Deny wins.
	Allow, Deny []string
	// Refuse lists the gate's own addresses, refused even if declared.
	Refuse []string
	// Ask is consulted for hosts that are neither allowed nor denied.
	Ask func(ctx context.Context, r egress.Request) egress.Answer
	// OnDecision is told about every attempt, allowed ones included.
	OnDecision func(egress.Decision)
	// Dial and Resolve replace the host's, for tests.
	Dial    egress.DialFunc
	Resolve egress.ResolveFunc
}

// Env is the environment of a run. The zero value passes PATH, HOME, LANG,
// TERM, TMPDIR and USER.
type Env struct {
	// Pass names variables taken from the caller's environment. Not nil and
	// empty passes nothing.
	Pass []string
	// Inherit passes all of them, loader and start-up variables excepted.
	Inherit bool
	// Set gives variables a value.
	Set map[string]string
}

// Limits bound a run. Zero means the default of DefaultLimits for the fields
// that have one, and no limit for the others.
type Limits struct {
	Wall      time.Duration // from start to end
	Idle      time.Duration // without output
	CPU       time.Duration // per process
	Memory    int64         // bytes, whole tree
	Processes int64         // whole tree
	FileSize  int64         // bytes per file
	OpenFiles int64         // per process
	Output    int64         // bytes per stream, truncated beyond
	TempSize  int64         // bytes of each private file system
}

// DefaultLimits are used where a field is zero. They stop runaways, not work.
func DefaultLimits() Limits {
	return Limits{
		FileSize:  64 << 30,
		OpenFiles: 65536,
		Output:    8 << 20,
		TempSize:  4 << 30,
	}
}

func (l Limits) withDefaults() Limits {
	d := DefaultLimits()
	if l.FileSize == 0 {
		l.FileSize = d.FileSize
	}
	if l.OpenFiles == 0 {
		l.OpenFiles = d.OpenFiles
	}
	if l.Output == 0 {
		l.Output = d.Output
	}
	if l.TempSize == 0 {
		l.TempSize = d.TempSize
	}
	return l
}

// Overlay keeps changes below Root in Layer instead of in Root. Layer is a
// directory of the caller's, outside every declared root; package changes
// seals, shows, accepts and discards it.
type Overlay struct {
	Root, Layer string
}

func (o Overlay) active() bool { return o.Layer != "" }

// Terminal is the size of the terminal to make, and what its other end is
// connected to: Stdin of the Spec is copied into it, its output goes to Stdout.
type Terminal struct {
	Rows, Cols uint16
}

// ErrNoLauncher: there is neither a gatehouse-launch binary beside the program
// nor did its main function call MaybeLaunch.
var ErrNoLauncher = errors.New("sandbox: no second stage: call sandbox.MaybeLaunch first thing in main, or install gatehouse-launch beside the program")

// NoBackendError says that nothing on this host holds what a Spec needs. The
// command was not started.
type NoBackendError struct {
	Need  Guarantee
	Tried []Attempt
}

// Attempt is one back-end that was considered and why it was not taken.
type Attempt struct {
	Backend Backend
	Missing Guarantee
	Reason  string
}

// Error lists every back-end with what it lacks.
func (e *NoBackendError) Error() string {
	var b strings.Builder
	b.WriteString("sandbox: refused, no back-end holds what is needed")
	for _, a := range e.Tried {
		fmt.Fprintf(&b, "; %s: ", a.Backend)
		switch {
		case a.Reason != "":
			b.WriteString(a.Reason)
		default:
			b.WriteString("cannot hold " + a.Missing.String())
		}
	}
	return b.String()
}

// Verify reports every problem of the Spec at once, without touching the disk.
func (s *Spec) Verify() error {
	var errs []error
	if len(s.Command) == 0 || s.Command[0] == "" {
		errs = append(errs, errors.New("command: empty"))
	}
	for _, group := range []struct {
		name string
		list []string
	}{{"command", s.Command}, {"read", s.Read}, {"write", s.Write}, {"protected", s.Protected}, {"unix socket", s.UnixSockets}} {
		for _, v := range group.list {
			if strings.ContainsRune(v, 0) {
				errs = append(errs, fmt.Errorf("%s %q: contains a NUL byte", group.name, v))
			}
		}
	}
	for _, p := range s.UnixSockets {
		if !filepath.IsAbs(p) {
			errs = append(errs, fmt.Errorf("unix socket %q: not an absolute path", p))
		}
	}
	for p := range s.Files {
		if !filepath.IsAbs(p) || filepath.Clean(p) != p || strings.ContainsRune(p, 0) {
			errs = append(errs, fmt.Errorf("file %q: not a clean absolute path", p))
		}
	}
	if c := s.Channel; c != nil && (filepath.Dir(c.Path) != "/run" || c.Serve == nil) {
		errs = append(errs, fmt.Errorf("channel %q: not in /run, or served by nobody", c.Path))
	}
	for _, u := range s.Unprotected {
		if !isDefaultProtected(u) {
			errs = append(errs, fmt.Errorf("unprotected %q: not one of the default protected names", u))
		}
	}
	if s.Net.Mode == NetNone && len(s.Net.Allow) > 0 {
		errs = append(errs, errors.New("network: hosts are given but the mode is none"))
	}
	if s.Net.Mode == NetHosts && len(s.Net.Allow) == 0 && s.Net.Ask == nil {
		errs = append(errs, errors.New("network: mode is hosts but none is given"))
	}
	if _, err := egress.ParseRules(s.Net.Allow, s.Net.Deny); err != nil {
		errs = append(errs, err)
	}
	for k, v := range s.Env.Set {
		if k == "" || strings.ContainsAny(k, "=\x00") || strings.ContainsRune(v, 0) {
			errs = append(errs, fmt.Errorf("environment %q: not a variable", k))
		}
	}
	l := s.Limits
	if min(l.Wall, l.Idle, l.CPU) < 0 || min(l.Memory, l.Processes, l.FileSize, l.OpenFiles, l.Output, l.TempSize) < 0 {
		errs = append(errs, errors.New("limits: negative"))
	}
	if s.Overlay.active() && s.Overlay.Root == "" {
		errs = append(errs, errors.New("overlay: a layer without a root"))
	}
	return errors.Join(errs...)
}
