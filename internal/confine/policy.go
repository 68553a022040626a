package confine

import (
	"errors"
	"fmt"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
)

// FromPolicy takes from a session policy what a process may do without being
// asked about. Rules over commands and tools say nothing about a process and
// are left to the gate; rules over paths and hosts count.
func FromPolicy(e *policy.Explanation) (Access, error) {
	a := Access{Read: Part{}, Write: Only(), Hosts: Only()}
	var errs []error
	if len(e.Profiles) != 1 {
		return a, fmt.Errorf("the policy has %d profiles in force; a run takes one", len(e.Profiles))
	}
	p := &e.Profiles[0]
	levels := map[string]call.Level{}
	for _, entry := range p.Entries {
		levels[entry.Entry] = entry.Level
	}
	for _, entry := range p.Entries {
		capability, scope, _ := strings.Cut(entry.Entry, ":")
		if err := a.take(call.Capability(capability), scope, entry.Level, levels); err != nil {
			errs = append(errs, fmt.Errorf("%s: %s: %w", entry.Source, entry.Entry, err))
		}
	}
	for _, r := range e.Rules {
		if err := a.rule(&r.Rule); err != nil {
			errs = append(errs, fmt.Errorf("%s: rule %s: %w", r.Source, r.Name, err))
		}
	}
	return a, errors.Join(errs...)
}

var errDelete = errors.New("a process that may write files can also empty and delete them; approve fs.delete for the same places, or do not approve fs.write")

// take adds one line of a profile.
func (a *Access) take(c call.Capability, scope string, level call.Level, levels map[string]call.Level) error {
	auto := level == call.AutoApprove
	switch c {
	case call.FSRead:
		switch {
		case scope == "" && auto: // whatever the sandbox shows by default is less
		case scope == "":
			a.Read.Said = true
		case auto:
			a.Read.Said, a.Read.Items = true, append(a.Read.Items, scope)
		default:
			return errors.New("a place inside what may be read cannot be left out; name what may be read instead")
		}
	case call.FSWrite:
		return a.write(scope, auto, levels)
	case call.NetEgress:
		a.host(scope, level)
	case call.ProcExec:
		if scope == "" && level == call.Deny {
			a.Exec = Only()
		}
	}
	return nil
}

func (a *Access) write(scope string, auto bool, levels map[string]call.Level) error {
	if scope == "" {
		if auto {
			scope = "./**"
		} else {
			return nil
		}
	}
	if !auto {
		a.Kept = append(a.Kept, scope)
		return nil
	}
	// The strictest line that covers the place counts, and the plain one does
	// where there is no line for it.
	deletes, said := levels[string(call.FSDelete)+":"+scope]
	if !said {
		deletes = levels[string(call.FSDelete)]
	}
	if deletes != call.AutoApprove {
		return errDelete
	}
	a.Write.Items = append(a.Write.Items, scope)
	return nil
}

func (a *Access) host(scope string, level call.Level) {
	switch {
	case level == call.AutoApprove && scope == "":
		a.Hosts.All = true
	case level == call.AutoApprove:
		a.Hosts.Items = append(a.Hosts.Items, scope)
	case level == call.Deny && scope != "":
		a.Denied = append(a.Denied, scope)
	case level.Asks():
		a.Ask = true
	}
}

// rule adds a rule over paths or hosts that objects.
func (a *Access) rule(r *policy.Rule) error {
	if r.Level == call.AutoApprove || r.Command != "" || r.Operation != "" {
		return nil
	}
	if r.Host != "" {
		a.host(r.Host, r.Level)
	}
	if r.Path != "" {
		if strings.HasPrefix(r.Path, "**/") {
			return errors.New("a name at any depth cannot be kept from a process; name the places")
		}
		a.Kept = append(a.Kept, r.Path)
	}
	return nil
}
