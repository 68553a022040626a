package sandbox

import (
	"fmt"
	"slices"
	"strings"
)

// enforcedBy says which mechanism holds a guarantee under a back-end.
func enforcedBy(b Backend, g Guarantee) string {
	table := map[Guarantee][2]string{
		WriteRoots:      {"read-only mounts, repeated by Landlock rules", "Landlock rules"},
		ReadRoots:       {"only declared paths and the runtime are mounted", "Landlock rules; names stay visible"},
		ReadAbsent:      {"a file system of its own", ""},
		ProtectedPaths:  {"read-only mounts, their parents pinned; new ones quarantined at the end", ""},
		Metadata:        {"read-only mounts", "seccomp: no change of mode, owner, times by path"},
		NoNetwork:       {"an empty network namespace", "seccomp: no sockets"},
		HostNames:       {"an empty network namespace whose only exit is the egress proxy", ""},
		UnixSockets:     {"seccomp: no AF_UNIX; private /run and /tmp", "seccomp: no AF_UNIX; Landlock scope"},
		Processes:       {"a pid namespace, seccomp, Landlock scope", "Landlock scope, seccomp"},
		ProcessesHidden: {"a pid namespace with its own /proc", ""},
		IPC:             {"an IPC namespace", "seccomp: no System V or POSIX objects"},
		Privileges:      {"a user namespace, no capabilities, no_new_privs, an unprivileged user", "no_new_privs, no capabilities, an unprivileged user"},
		Syscalls:        {"a seccomp filter", "a seccomp filter"},
		Environment:     {"built from the declared names", "built from the declared names"},
		Descriptors:     {"closed from 3 up before the command starts", "closed from 3 up before the command starts"},
		TreeDead:        {"the kernel ends the pid namespace", "a sweep of the Landlock signal scope"},
		DiesWithGate:    {"parent-death signal of the namespace's first process", ""},
		TerminalSafe:    {"seccomp: no TIOCSTI; a session and terminal of its own", "seccomp: no TIOCSTI; a session of its own"},
		MemoryLimit:     {"a control group", "a control group"},
		NoPrograms:      {"seccomp: its listener lets one program start", "seccomp: its listener lets one program start"},
		ProcessLimit:    {"RLIMIT_NPROC in its own user namespace, or a control group", "a control group"},
	}
	row := table[g]
	switch b {
	case Bubblewrap:
		return row[0]
	case Landlock:
		return row[1]
	}
	return "the back-end's own means"
}

// Explain says, without running anything, what a Spec would be held to and by
// what. It fails where Start would fail.
func Explain(s Spec) (string, error) {
	p, err := newPlan(&s)
	if err != nil {
		return "", err
	}
	defer removePlaceholders(p)
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	chosen, missing := chooseForExplain(p)
	line("command    %s", strings.Join(s.Command, " "))
	line("program    %s", p.path)
	line("directory  %s", p.dir)
	if chosen == "" {
		line("back-end   none: this would be refused")
		for _, m := range missing {
			line("           %s", m)
		}
	} else {
		line("back-end   %s", chosen)
	}
	for _, r := range p.roots {
		line("%-10s %s", map[bool]string{true: "write", false: "read"}[r.write], describe(r))
	}
	for _, f := range p.sealed {
		line("protected  %s", f.path)
	}
	line("protected  at any depth, if it appears: %s", strings.Join(protectedNames(p), " "))
	explainNet(line, s.Net)
	line("variables  %s", strings.Join(envNames(p.env), " "))
	if len(p.stripped) > 0 {
		line("withheld   %s", strings.Join(p.stripped, " "))
	}
	explainLimits(line, p.limits)
	line("")
	for _, name := range p.need.Names() {
		g, _ := ParseGuarantee(name)
		line("%-16s %s", name, enforcedBy(chosen, g))
	}
	if w := s.Without.Names(); len(w) > 0 {
		line("waived           %s", strings.Join(w, " "))
	}
	return b.String(), nil
}

func chooseForExplain(p *plan) (Backend, []string) {
	var why []string
	for _, b := range candidates(p) {
		if b == Unconfined {
			return b, why
		}
		e := Supported().Of(b)
		got := e.Guarantees
		if len(p.spec.Write)+len(p.spec.Private) > 0 && got.Has(ReadAbsent) {
			got |= ProtectedPaths
		}
		switch miss := p.need &^ got; {
		case e.Guarantees == 0:
			why = append(why, string(b)+": "+e.Reason)
		case miss != 0:
			why = append(why, string(b)+": cannot hold "+miss.String())
		default:
			return b, why
		}
	}
	return "", why
}

func describe(r root) string {
	if r.dir {
		return r.path + "/**"
	}
	return r.path
}

func protectedNames(p *plan) []string {
	var names []string
	for _, s := range p.guard.suffixes {
		names = append(names, strings.Join(s, "/"))
	}
	return names
}

func envNames(env []string) []string {
	var names []string
	for _, kv := range env {
		k, _, _ := strings.Cut(kv, "=")
		names = append(names, k)
	}
	slices.Sort(names)
	return names
}

func explainNet(line func(string, ...any), n Net) {
	switch n.Mode {
	case NetNone:
		line("network    none")
	case NetHosts:
		line("network    %s, through the proxy", strings.Join(n.Allow, " "))
	case NetPublic:
		line("network    public addresses, through the proxy")
	}
	if len(n.Deny) > 0 {
		line("denied     %s", strings.Join(n.Deny, " "))
	}
}

func explainLimits(line func(string, ...any), l Limits) {
	text := fmt.Sprintf("file size %d, open files %d, output %d, temporary space %d", l.FileSize, l.OpenFiles, l.Output, l.TempSize)
	if l.Wall > 0 {
		text += ", wall " + l.Wall.String()
	}
	if l.Idle > 0 {
		text += ", idle " + l.Idle.String()
	}
	if l.CPU > 0 {
		text += ", processor " + l.CPU.String()
	}
	if l.Memory > 0 {
		text += fmt.Sprintf(", memory %d", l.Memory)
	}
	if l.Processes > 0 {
		text += fmt.Sprintf(", processes %d", l.Processes)
	}
	line("limits     %s", text)
}
