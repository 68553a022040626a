package confine

import "github.com/seed-3ebc6b8a/gatehouse/tool/declare"

// FromTool takes from a tool's policy what its process may touch. What the
// policy leaves unspecified is not let through by it.
func FromTool(p *declare.Policy) Access {
	if p == nil {
		return Access{}
	}
	return Access{
		Read: part(p.Filesystem.Read), Write: part(p.Filesystem.Write), Hosts: part(p.Network), Env: part(p.Environment), Exec: part(p.Exec),
	}
}

func part(s declare.Stance) Part {
	switch s.Mode() {
	case declare.ModeNone:
		return Only()
	case declare.ModeListed:
		return Only(s.Items()...)
	case declare.ModeAll:
		return Part{Said: true, All: true}
	}
	return Part{}
}
