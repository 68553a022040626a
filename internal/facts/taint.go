package facts

import "github.com/seed-3ebc6b8a/gatehouse/internal/call"

// taint says what an agent takes in by a call: credentials that it reads, and
// what comes from outside the machine or from a tool that nobody vouches for.
func (x *extractor) taint() {
	if x.call.Kind != call.External {
		return
	}
	for _, n := range x.facts.Needs {
		switch n.Capability {
		case call.SecretsAccess:
			x.facts.Taint |= call.TaintSecrets
		case call.NetEgress:
			x.facts.Taint |= call.TaintUntrusted
		}
	}
	if x.untrusted {
		x.facts.Taint |= call.TaintUntrusted
	}
}
