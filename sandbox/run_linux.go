package sandbox

import (
	"errors"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/seed-3ebc6b8a/gatehouse/sandbox/egress"
)

// starters are the back-ends of this system.
var starters = map[Backend]func(*plan, *streams) (*job, error){
	Bubblewrap: startBubblewrap,
	Landlock:   startLandlock,
	Firejail:   startFirejail,
	Podman:     startPodman,
	Docker:     startDocker,
	Wasm:       startWasm,
	Unconfined: startUnconfined,
}

// systemOrder is the order in which they are tried.
func systemOrder() []Backend { return []Backend{Bubblewrap, Landlock, Firejail} }

// exitState translates how the process ended.
func exitState(state *os.ProcessState, r *Result) {
	r.ExitCode = state.ExitCode()
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		r.ExitCode = 128 + int(ws.Signal())
	}
	r.Usage.User, r.Usage.System = state.UserTime(), state.SystemTime()
	if ru, ok := state.SysUsage().(*syscall.Rusage); ok {
		r.Usage.MaxRSS = ru.Maxrss << 10
	}
}

// Signal sends a signal to the command itself.
func (p *Process) Signal(sig os.Signal) error {
	s, ok := sig.(syscall.Signal)
	if !ok {
		return errors.ErrUnsupported
	}
	return p.job.main.signal(s)
}

// serveEgress runs the proxy on the listener that came out of the sandbox.
func (j *job) serveEgress(f *os.File) error {
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		return err
	}
	n := j.plan.spec.Net
	rules, err := egress.ParseRules(n.Allow, n.Deny)
	if err != nil {
		_ = l.Close()
		return err
	}
	command := strings.Join(j.plan.spec.Command, " ")
	proxy, err := egress.New(egress.Config{
		Rules: rules, Public: n.Mode == NetPublic, Refuse: n.Refuse, Command: command, Ask: n.Ask, Dial: n.Dial, Resolve: n.Resolve,
		OnDecision: func(d egress.Decision) {
			if n.OnDecision != nil {
				n.OnDecision(d)
			}
			if !d.Allowed {
				j.facts.add(Refusal{Kind: RefusedHost, Subject: d.Target(), Program: "unknown", Reason: d.Reason})
			}
		},
	})
	if err != nil {
		_ = l.Close()
		return err
	}
	j.services = append(j.services, proxy)
	j.waits.Go(func() { _ = proxy.Serve(l) })
	return nil
}
