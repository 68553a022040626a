package sandbox

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
)

// Support is what the back-ends of this host proved to hold.
type Support struct {
	Backends []BackendSupport
}

// BackendSupport is one back-end. Guarantees is empty when it does not work
// here, and Reason says why.
type BackendSupport struct {
	Backend    Backend
	Guarantees Guarantee
	Reason     string
}

// Any reports whether some back-end holds all of g.
func (s Support) Any(g Guarantee) bool {
	return slices.ContainsFunc(s.Backends, func(b BackendSupport) bool { return b.Guarantees.Has(g) })
}

// Of returns the entry of a back-end.
func (s Support) Of(b Backend) BackendSupport {
	for _, e := range s.Backends {
		if e.Backend == b {
			return e
		}
	}
	return BackendSupport{Backend: b, Reason: "not available on this system"}
}

// String is one line per back-end.
func (s Support) String() string {
	var b strings.Builder
	for _, e := range s.Backends {
		b.WriteString(string(e.Backend) + ": ")
		if e.Guarantees == 0 {
			b.WriteString("not usable: " + e.Reason + "\n")
			continue
		}
		b.WriteString(e.Guarantees.String() + "\n")
	}
	return b.String()
}

// Supported tries every back-end with a harmless command, once per process,
// and returns what each of them held. The presence of a program proves nothing.
func Supported() Support { return supported() }

var supported = sync.OnceValue(func() Support {
	var s Support
	for _, b := range systemOrder() {
		s.Backends = append(s.Backends, probe(b))
	}
	return s
})

func probe(b Backend) BackendSupport {
	out := BackendSupport{Backend: b}
	dir, err := os.MkdirTemp("", "gatehouse-probe-")
	if err != nil {
		out.Reason = err.Error()
		return out
	}
	defer os.RemoveAll(dir)
	// Started as root, the probe runs as somebody else.
	if err := os.Chmod(dir, 0o755); err != nil {
		out.Reason = err.Error()
		return out
	}
	for _, net := range []Net{{}, {Mode: NetHosts, Allow: []string{"probe.invalid"}}} {
		r, err := Run(context.Background(), Spec{
			Command: []string{"/bin/true"}, Dir: dir, Read: []string{dir}, Backend: b, Net: net, Without: AllGuarantees, NoExec: true,
			Limits: Limits{Processes: 64, Memory: 256 << 20},
		})
		var refused *NoBackendError
		switch {
		case net.Mode != NetNone && err != nil: // works, or not, without a network
		case errors.As(err, &refused) && len(refused.Tried) > 0:
			out.Reason = refused.Tried[0].Reason
		case err != nil:
			out.Reason = err.Error()
		case r.ExitCode != 0:
			out.Reason = "the probe failed: " + firstLine(string(r.Stderr))
		default:
			out.Guarantees |= r.Guarantees
		}
	}
	return out
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
