package rulebook

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/place"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// project is a project's own policy file as it is in force.
type project struct {
	content []byte
	head    call.Digest // the policy outside that snap was compiled with
	snap    *policy.Snapshot
	problem string // why the file on disk is not in force
}

// projectScope names a project's file in the store.
const projectScope = "project:"

// For returns the policy for a call and the head it was made from.
func (b *Book) For(c *call.Call) (*policy.Snapshot, call.Digest) {
	b.mu.Lock()
	force := b.force
	path := b.knownAbove(c.Dir)
	b.mu.Unlock()
	if found := projectFile(c.Dir); len(found) > len(path) {
		path = found // the nearest one counts
	}
	if path == "" {
		return force.snap, force.snap.Hash
	}
	content, err := os.ReadFile(path)
	b.mu.Lock()
	snap, adopted := b.project(force, path, content, err)
	b.mu.Unlock()
	if adopted {
		b.remember(path, content)
	}
	return snap, force.snap.Hash
}

// project returns the snapshot of a project, and whether its file was newly
// taken. A file that was taken away, does not load, or would loosen what was
// in force here before leaves the old one in force. One that never loaded
// denies every call until it does. The caller holds the lock.
func (b *Book) project(force *edition, path string, content []byte, readErr error) (_ *policy.Snapshot, adopted bool) {
	p := b.projects[path]
	if p == nil {
		p = &project{}
		b.projects[path] = p
	}
	if p.content != nil && p.head != force.snap.Hash {
		// The policy outside has changed: the same file means something else.
		snap, err := b.compileProject(force, path, p.content)
		p.snap, p.head, p.problem = snap, force.snap.Hash, ""
		if err != nil {
			b.complain(path, p, err.Error())
		}
	}
	switch {
	case readErr != nil:
		b.complain(path, p, "it cannot be read any more ("+readErr.Error()+"); what it said stays in force")
		return p.snap, false
	case p.content != nil && bytes.Equal(p.content, content):
		return p.snap, false
	}
	snap, err := b.compileProject(force, path, content)
	if err != nil {
		b.complain(path, p, err.Error())
		return p.snap, false
	}
	if p.snap != nil && len(policy.Loosens(p.snap, snap)) > 0 && !b.trusted[digestOf(path, content)] {
		b.complain(path, p, "it was changed and would loosen; `gatehouse policy trust "+path+"` accepts it")
		return p.snap, false
	}
	*p = project{content: content, head: force.snap.Hash, snap: snap}
	return p.snap, true
}

// compileProject compiles a project's file with the policy outside. The
// caller holds the lock.
func (b *Book) compileProject(force *edition, path string, content []byte) (*policy.Snapshot, error) {
	parsed, err := policy.Parse(path, content)
	if err != nil {
		return nil, err
	}
	layers := append([]policy.Layer(nil), force.layers...)
	layers = append(layers, policy.Layer{Scope: policy.ScopeProject, File: parsed, Trusted: b.trusted[parsed.Digest()]})
	return policy.Compile(layers, b.opts.Compile)
}

// digestOf is the digest that an approver trusts.
func digestOf(path string, content []byte) call.Digest {
	parsed, err := policy.Parse(path, content)
	if err != nil {
		return call.Digest{}
	}
	return parsed.Digest()
}

// complain notes why the file on disk is not in force, loudly once.
func (b *Book) complain(path string, p *project, problem string) {
	if p.problem == problem {
		return
	}
	p.problem = problem
	b.opts.Log.Error("a project's policy is not in force as it is on disk", "file", path, "problem", problem)
}

// remember keeps a project's file, so that a restart does not forget what it
// tightened. Where that fails the file still counts; the log says so.
func (b *Book) remember(path string, content []byte) {
	err := b.opts.Store.Write(context.Background(), func(tx *store.Tx) error {
		return b.writeFiles(tx, projectScope+path, []file{{Scope: policy.ScopeProject, Path: path, Content: content}}, "seen")
	})
	if err != nil {
		b.opts.Log.Error("a project's policy could not be remembered", "file", path, "error", err)
	}
}

// TrustProject takes a project's file as it is on disk now: it may loosen, or
// be gone. It runs inside an approver's transaction.
func (b *Book) TrustProject(tx *store.Tx, path, by string) (call.Digest, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		_, err := tx.Exec(`DELETE FROM policy_files WHERE scope = $1`, projectScope+path)
		store.Notify(tx, Scope, "trust")
		return call.Digest{}, err
	}
	if err != nil {
		return call.Digest{}, err
	}
	parsed, err := policy.Parse(path, content)
	if err != nil {
		return call.Digest{}, err
	}
	return parsed.Digest(), b.trust(tx, parsed.Digest(), path, by)
}

// knownAbove returns the nearest remembered project file at or above a
// directory. The caller holds the lock.
func (b *Book) knownAbove(dir string) string {
	best := ""
	for path := range b.projects {
		root := filepath.Dir(path)
		if (dir == root || strings.HasPrefix(dir, strings.TrimSuffix(root, "/")+"/")) && len(path) > len(best) {
			best = path
		}
	}
	return best
}

// projectFile finds the policy file of the project that a directory is in:
// the nearest one up the tree.
func projectFile(dir string) string {
	if !filepath.IsAbs(dir) {
		return ""
	}
	for {
		path := filepath.Join(dir, place.ProjectPolicy)
		if _, err := os.Lstat(path); err == nil || !errors.Is(err, os.ErrNotExist) {
			return path
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
	}
}
