package dispatch

import (
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/provider"
	"github.com/seed-3ebc6b8a/gatehouse/sandbox"
)

// sandbox is what holds a run: it reads its directory, its program and the few
// files that were made for it, writes in its directory and its own home, and
// reaches its models.
func (p *plan) sandbox() *sandbox.Spec {
	s := &sandbox.Spec{
		Read:    append([]string{p.launch.Dir, p.home, p.temp}, provider.Tree(p.program.path)...),
		Private: []string{p.home, p.temp},
		Net:     sandbox.Net{Mode: sandbox.NetHosts, Allow: provider.Hosts(p.cli, p.launch.Env, p.launch.Files)},
	}
	if !p.launch.ReadOnly {
		s.Write = []string{p.launch.Dir}
	}
	return s
}
