package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/daemon"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/place"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store/storetest"
)

// nodes are two nodes on one database, with calls of one agent that were each
// approved once.
type nodes struct {
	*house                   // the node whose transaction is paused or dies
	b      *house            // the other one
	names  []string          // of the calls, each to be used once
	grants map[string]string // by the calls' names
}

func newNodes(t *testing.T, opts store.Options, calls int) *nodes {
	t.Helper()
	home := t.TempDir()
	text := fmt.Sprintf("version = 1\n[limits]\npending_per_session = %d\npending_per_principal = %d\nasks_per_hour = %d\ngrant_life = \"1h\"\n", 4*calls, 4*calls, 8*calls)
	if err := os.WriteFile(filepath.Join(home, "policy.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	node := func(name string) *house {
		h := &house{t: t, disk: &storetest.Driver{}, dir: home, alice: admin.Actor{Approver: "alice", Channel: "terminal"}}
		parts, err := daemon.Open(t.Context(), daemon.Options{Place: place.Place{Home: home}, Database: opts.DSN, Node: name, WrapDriver: h.disk.Wrap})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := parts.Store.Close(); err != nil {
				t.Errorf("close the store: %v", err)
			}
		})
		h.Parts = parts
		return h
	}
	n := &nodes{house: node("a"), b: node("b")}
	if _, err := n.Desk.Enrol(t.Context(), "alice", admin.Enrolment{Process: "test"}); err != nil {
		t.Fatal(err)
	}
	n.agent = n.enter("coder")
	n.b.agent = n.agent
	var all sync.WaitGroup
	requests := make(map[string]string)
	n.grants = make(map[string]string)
	for i := range calls {
		n.names = append(n.names, fmt.Sprintf("n%d", i))
		id := n.want(gate.Pending, n.named(n.names[i])).Request
		all.Go(func() { n.approve(id, 0) })
		requests[id] = n.names[i]
	}
	all.Wait()
	grants, err := n.Desk.Grants(t.Context())
	if err != nil || len(grants) != calls {
		t.Fatalf("%d grants: %v", len(grants), err)
	}
	for _, g := range grants {
		n.grants[requests[g.Request]] = g.ID
	}
	return n
}

func (n *nodes) named(name string) *call.Call {
	return n.native("create_element", fmt.Sprintf(`{"name":%q}`, name))
}

// next takes one of the approved calls.
func (n *nodes) next() string {
	n.t.Helper()
	if len(n.names) == 0 {
		n.t.Fatal("too few calls were approved")
	}
	name := n.names[0]
	n.names = n.names[1:]
	return name
}

func (n *nodes) open() int { return n.b.count(`SELECT count(*) FROM open_call`) }

// statements is the transaction in which an approved call is let through.
func (n *nodes) statements() (texts []string) {
	n.disk.Before(func(query string) error { texts = append(texts, query); return nil })
	n.want(gate.Allowed, n.named(n.next()))
	n.disk.Before(nil)
	return texts
}

// paused submits an approved call on node a, stops it before its k-th
// statement, lets act happen on node b, and goes on when that is done or waits
// for node a. It says whether act was durable before node a went on.
func (n *nodes) paused(name string, k int, act func()) (ans *gate.Answer, first bool) {
	n.t.Helper()
	reached, resume, acted := make(chan struct{}), make(chan struct{}), make(chan struct{})
	count := 0
	n.disk.Before(func(string) error {
		if count++; count == k+1 {
			close(reached)
			<-resume
		}
		return nil
	})
	defer n.disk.Before(nil)
	answer := make(chan *gate.Answer, 1)
	go func() { answer <- n.submit(n.named(name)) }()
	<-reached
	go func() { defer close(acted); act() }()
	select {
	case <-acted:
		first = true
	case <-time.After(20 * time.Millisecond): // it waits for node a, or is slow; either way it is not first
	}
	close(resume)
	ans = <-answer
	<-acted
	return ans, first
}

// TestAttack29EveryPause: between any two statements of the transaction that
// lets a call through, another node throws the kill switch, blocks the agent,
// revokes the grant or uses it. There is at most one effect, and none after
// what stops it was durable.
func TestAttack29EveryPause(t *testing.T) {
	t.Parallel()
	storetest.BothOptions(t, func(t *testing.T, opts store.Options) {
		n := newNodes(t, opts, 80)
		texts := n.statements()
		must := func(err error) {
			if err != nil {
				t.Error(err)
			}
		}
		var other *gate.Answer
		var block session.Block
		acts := []struct {
			name string
			act  func(name string)
			undo func()
		}{
			{"kill", func(string) { must(n.b.Desk.SetKill(t.Context(), n.alice, true, "drill")) }, func() { must(n.b.Desk.SetKill(t.Context(), n.alice, false, "")) }},
			{"block", func(string) {
				must(n.b.Store.Write(t.Context(), func(tx *store.Tx) (err error) {
					block, err = n.b.Sessions.SetBlock(tx, session.Block{Agent: "coder", By: "alice", Reason: "drill"})
					return err
				}))
			}, func() {
				must(n.b.Store.Write(t.Context(), func(tx *store.Tx) error { return n.b.Sessions.Unblock(tx, "coder", block.ID) }))
			}},
			{"revoke", func(name string) {
				_ = n.b.Desk.RevokeGrant(t.Context(), n.alice, n.grants[name]) // it may have been used first
			}, nil},
			{"use", func(name string) { other = n.b.submit(n.named(name)) }, nil},
		}
		for _, a := range acts {
			for k := range texts {
				name, before := n.next(), n.open()
				other = nil
				ans, first := n.paused(name, k, func() { a.act(name) })
				if a.undo != nil {
					a.undo()
				}
				where := fmt.Sprintf("%s before statement %d (%.40s)", a.name, k, texts[k])
				effects := 0
				for _, got := range []*gate.Answer{ans, other} {
					if got != nil && got.Verdict == gate.Allowed {
						effects++
					}
				}
				if opened := n.open() - before; opened != effects || effects > 1 || a.name == "use" && effects != 1 {
					t.Errorf("%s: %d effects, %d on record", where, effects, opened)
				}
				if a.name != "use" && first && ans.Verdict == gate.Allowed {
					t.Errorf("%s: let through after that was durable", where)
				}
			}
		}
	})
}

// TestAttack29EveryDeath: the node dies before any statement of the
// transaction, or with the commit's answer on its way. The call runs at most
// once, and an approval that was not used is not lost.
func TestAttack29EveryDeath(t *testing.T) {
	t.Parallel()
	storetest.BothOptions(t, func(t *testing.T, opts store.Options) {
		n := newNodes(t, opts, 40)
		texts := n.statements()
		for k := range texts {
			name, before, count := n.next(), n.open(), 0
			n.disk.Before(func(string) error {
				if count++; count > k {
					return store.ErrUnavailable
				}
				return nil
			})
			ans := n.submit(n.named(name))
			n.disk.Before(nil)
			other := n.b.submit(n.named(name))
			if ans.Verdict == gate.Allowed || other.Verdict != gate.Allowed || n.open()-before != 1 {
				t.Errorf("dead before statement %d (%.40s): %s, then on the other node %s; %d on record", k, texts[k], ans.Verdict, other.Verdict, n.open()-before)
			}
		}
		name, before := n.next(), n.open()
		n.disk.After(func(query string) error {
			if query == "COMMIT" {
				return store.ErrUnavailable
			}
			return nil
		})
		ans := n.submit(n.named(name))
		n.disk.After(nil)
		other := n.b.submit(n.named(name))
		if ans.Verdict == gate.Allowed || other.Verdict == gate.Allowed || n.open()-before != 1 {
			t.Errorf("dead after the commit: %s, then on the other node %s; %d on record", ans.Verdict, other.Verdict, n.open()-before)
		}
	})
}
