package confine

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
	"github.com/seed-3ebc6b8a/gatehouse/sandbox/egress"
)

// Part is what was said about one kind of access. The zero value says nothing.
type Part struct {
	Said  bool
	All   bool
	Items []string
}

// Only says that the listed are let through and nothing else.
func Only(items ...string) Part { return Part{Said: true, Items: items} }

// Access is what a process was declared to need.
type Access struct {
	// Read and Write are globs; a relative one is bound to the working
	// directory, one that starts with ~/ to the home.
	Read, Write Part
	// Kept are trees inside writable ones that stay as they are.
	Kept []string
	// Hosts are host patterns; Denied wins over them. Ask says that a person is
	// asked about a host that is in neither.
	Hosts  Part
	Denied []string
	Ask    bool
	// Env are names of variables; one that ends in * stands for all that begin
	// so.
	Env Part
	// Exec says which programs run: none besides it, whichever it sees, or those
	// that are listed. A program of a list starts no others, because a list
	// cannot be held against one that starts whatever it is given.
	Exec Part
	// Wall bounds how long it runs; 0 is no bound.
	Wall time.Duration
}

// Place is what names in an Access are bound to.
type Place struct {
	Dir, Home string
	// Program is what is started, by name or path.
	Program string
	// Environ are the variables there are, as NAME=VALUE.
	Environ []string
}

// Spec returns what holds a process to the access, without its command. All
// that cannot be held is reported at once.
func (a *Access) Spec(at Place) (sandbox.Spec, error) {
	var s sandbox.Spec
	var errs []error
	paths := func(what string, p Part) []string {
		if p.All {
			errs = append(errs, fmt.Errorf("%s: everything is more than a run is ever given; name the places", what))
		}
		list, err := bind(p.Items, at.Home)
		errs = append(errs, wrap(what, err))
		return list
	}
	s.Read, s.Write = paths("read", a.Read), paths("write", a.Write)
	if a.Read.Said && !a.Read.All && len(a.Read.Items) == 0 {
		// Nothing of its own: the runtime is there, and what it writes.
		s.Read = []string{"/usr"}
	}
	kept, err := bind(a.Kept, at.Home)
	errs = append(errs, wrap("write", err))
	for _, k := range kept {
		k, err := tree(k)
		errs = append(errs, wrap("write", err))
		// A relative name would be kept at any depth.
		if !filepath.IsAbs(k) {
			k = filepath.Join(at.Dir, k)
		}
		s.Protected = append(s.Protected, k)
	}
	errs = append(errs, a.network(&s), a.environment(&s, at.Environ), a.programs(&s, at.Program))
	s.Limits.Wall = a.Wall
	return s, errors.Join(errs...)
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// bind puts the home in place of a leading ~/.
func bind(items []string, home string) ([]string, error) {
	var out []string
	for _, item := range items {
		rest, inHome := strings.CutPrefix(item, "~")
		switch {
		case !inHome:
			out = append(out, item)
		case home == "":
			return nil, fmt.Errorf("%q: there is no home directory", item)
		case rest != "" && rest[0] != '/':
			return nil, fmt.Errorf("%q: another user's home", item)
		default:
			out = append(out, home+rest)
		}
	}
	return out, nil
}

// tree takes DIR/** for DIR. What stays as it is stays with all beneath, so
// another pattern would keep too much or too little.
func tree(pattern string) (string, error) {
	dir := strings.TrimSuffix(pattern, "/**")
	if strings.ContainsAny(dir, "*?[{") {
		return "", fmt.Errorf("%q: cannot be kept exactly; name a file, or a directory as DIR/**", pattern)
	}
	return filepath.Clean(dir), nil
}

func (a *Access) network(s *sandbox.Spec) error {
	allow := slices.Clone(a.Hosts.Items)
	public := a.Hosts.All
	// Any host on any port is the proxy's public mode. On some ports it is
	// neither that nor a list.
	allow = slices.DeleteFunc(allow, func(h string) bool {
		public = public || h == "*:*"
		return h == "*:*"
	})
	for _, h := range allow {
		if host, _, _ := strings.Cut(h, ":"); host == "*" || host == "" {
			return fmt.Errorf("hosts: %q: every host on some ports cannot be held; name the hosts, or say *:*", h)
		}
	}
	if _, err := egress.ParseRules(allow, a.Denied); err != nil {
		return fmt.Errorf("hosts: %w", err)
	}
	s.Net.Allow, s.Net.Deny = allow, a.Denied
	switch {
	case public:
		s.Net.Mode = sandbox.NetPublic
	case len(allow) > 0 || a.Ask:
		s.Net.Mode = sandbox.NetHosts
	}
	return nil
}

func (a *Access) environment(s *sandbox.Spec, environ []string) error {
	if !a.Env.Said {
		return nil
	}
	if a.Env.All {
		s.Env.Inherit = true
		return nil
	}
	s.Env.Pass = []string{}
	for _, item := range a.Env.Items {
		prefix, wild := strings.CutSuffix(item, "*")
		if !wild {
			s.Env.Pass = append(s.Env.Pass, item)
			continue
		}
		for _, kv := range environ {
			if k, _, _ := strings.Cut(kv, "="); strings.HasPrefix(k, prefix) {
				s.Env.Pass = append(s.Env.Pass, k)
			}
		}
	}
	return nil
}

func (a *Access) programs(s *sandbox.Spec, program string) error {
	if !a.Exec.Said || a.Exec.All {
		return nil
	}
	s.NoExec = true
	if len(a.Exec.Items) > 0 && !slices.Contains(a.Exec.Items, program) {
		return fmt.Errorf("exec: %q is not among the programs %s", program, strings.Join(a.Exec.Items, ", "))
	}
	return nil
}
