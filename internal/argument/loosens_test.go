package argument_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-3ebc6b8a/gatehouse/internal/argument"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/tool/declare"
)

// anyStance draws a stance out of a few items, so that two are often related.
func anyStance(t *rapid.T, name string, all bool, items ...string) declare.Stance {
	kinds := 3
	if all {
		kinds = 4
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, name) {
	case 0:
		return declare.Stance{}
	case 1:
		return declare.None
	case 3:
		return declare.All
	}
	return declare.Only(rapid.SliceOfNDistinct(rapid.SampledFrom(items), 1, 3, rapid.ID).Draw(t, name+" items")...)
}

func anyTool(t *rapid.T) declare.Tool {
	globs := []string{"/a/**", "/a/b/**", "/a/b/c", "/x/*", "./in/**", "./**"}
	tool := declare.Tool{Name: "x", Policy: &declare.Policy{
		Filesystem:  declare.Filesystem{Read: anyStance(t, "read", false, globs...), Write: anyStance(t, "write", false, globs...)},
		Network:     anyStance(t, "network", true, "*.example.com", "api.example.com", "api.example.com:443"),
		Environment: anyStance(t, "environment", false, "A", "AB", "A*"),
		Exec:        anyStance(t, "exec", true, "git", "ls", "/bin/ls"),
	}, Arguments: map[string]declare.Role{}}
	for _, key := range []string{"p", "q.*", "q.r", "l[]"} {
		if role := rapid.SampledFrom(append(declare.Roles(), "")).Draw(t, key); role != "" {
			tool.Arguments[key] = role
		}
	}
	return tool
}

// TestLoosensIsSound: where Loosens finds nothing, whatever the old declaration
// held back the new one holds back too, arguments and needs alike. This is
// what lets a change of tools.yaml take effect without an approver.
func TestLoosensIsSound(t *testing.T) {
	t.Parallel()
	values := []string{"/a/b/c", "/a/b/d", "/a/z", "/x/y", "/q", "in/a", "out", "../up", "~/h", "file:///a/b/c", "api.example.com", "https://www.example.com/x", "A", "ABC", "git", "ls -l", "/bin/ls", "text"}
	needs := []call.Need{
		{Capability: call.FSRead, Scope: "/a/b/c"}, {Capability: call.FSWrite, Scope: "./in/a"}, {Capability: call.FSDelete, Scope: "/a/**"}, {Capability: call.FSWrite},
		{Capability: call.NetEgress, Scope: "api.example.com:443"}, {Capability: call.NetEgress}, {Capability: call.ProcExec, Scope: "git status"}, {Capability: call.ProcExec},
		{Capability: call.SecretsAccess, Scope: "$AB"}, {Capability: call.SecretsAccess, Scope: "environment"},
	}
	tightened := 0
	rapid.Check(t, func(t *rapid.T) {
		was, now := anyTool(t), anyTool(t)
		if rapid.Bool().Draw(t, "one change") { // unrelated ones are rarely tighter
			now = was
			switch p := *was.Policy; rapid.IntRange(0, 3).Draw(t, "which") {
			case 0:
				p.Filesystem.Read = anyStance(t, "read again", false, "/a/**", "/a/b/**", "./in/**")
				now.Policy = &p
			case 1:
				p.Filesystem.Write = anyStance(t, "write again", false, "/a/**", "/a/b/**", "./in/**")
				now.Policy = &p
			case 2:
				p.Network, p.Exec = anyStance(t, "network again", true, "api.example.com"), anyStance(t, "exec again", true, "git")
				now.Policy = &p
			case 3:
				now.Arguments = anyTool(t).Arguments
			}
		}
		if len(declare.Loosens(&declare.Set{Tools: []declare.Tool{was}}, &declare.Set{Tools: []declare.Tool{now}})) > 0 {
			return
		}
		tightened++
		old, err := argument.New(&was, base)
		if err != nil {
			t.Fatal(err)
		}
		fresh, err := argument.New(&now, base)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range values {
			for _, shape := range []string{`{"p":%s}`, `{"q":{"r":%s}}`, `{"q":{"s":%s}}`, `{"l":[%s]}`, `{"other":%s}`} {
				quoted, _ := json.Marshal(v)
				args := fmt.Appendf(nil, shape, quoted)
				if old.Check(args, nil) != nil && fresh.Check(args, nil) == nil {
					t.Fatalf("%s was held back by %+v\nand is not by %+v", args, was, now)
				}
			}
		}
		for i := range needs {
			for _, guessed := range []bool{true, false} {
				if old.CheckNeed(&needs[i], guessed, base.Dir) != nil && fresh.CheckNeed(&needs[i], guessed, base.Dir) == nil {
					t.Fatalf("%s (guessed %t) was held back by %+v\nand is not by %+v", needs[i], guessed, was, now)
				}
			}
		}
	})
	if tightened < 10 {
		t.Errorf("only %d of the changes were tighter: this shows nothing", tightened)
	}
}
