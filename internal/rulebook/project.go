package rulebook

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/observe"
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

// maxFile is the largest policy file.
const maxFile = 1 << 20

// For returns the policy for a call and the head it was made from. Of the
// project files at and above its directory all count, as peers: one further
// down, which an agent may have made, does not take away what one above says.
func (b *Book) For(c *call.Call) (*policy.Snapshot, call.Digest) {
	b.mu.Lock()
	force := b.force
	b.mu.Unlock()
	snap := force.snap
	paths := b.projectFiles(c.Dir)
	contents := make([][]byte, len(paths))
	for i, path := range paths {
		if snap, contents[i] = b.effective(force, path); snap == nil {
			return nil, force.snap.Hash // one that never loaded denies, whatever the others say
		}
	}
	if len(paths) > 1 {
		snap = b.combine(force, paths, contents)
	}
	return b.inSession(c, force, snap, paths, contents), force.snap.Hash
}

// effective returns what a project's file says that is in force, and the
// policy it makes together with the one outside.
func (b *Book) effective(force *edition, path string) (*policy.Snapshot, []byte) {
	onDisk, err := observe.ReadOwnFile(path, maxFile)
	b.mu.Lock()
	snap, adopted := b.project(force, path, onDisk, err)
	var content []byte
	if p := b.projects[path]; p != nil {
		content = p.content
	}
	b.mu.Unlock()
	if adopted {
		b.remember(path, onDisk)
	}
	return snap, content
}

// combine compiles several project files with the policy outside, once for the
// same contents. Where they do not go together it returns nil, which denies.
func (b *Book) combine(force *edition, paths []string, contents [][]byte) *policy.Snapshot {
	h := sha256.New()
	h.Write(force.snap.Hash[:])
	for i, path := range paths {
		fmt.Fprintf(h, "%q %x\n", path, sha256.Sum256(contents[i]))
	}
	key := call.Digest(h.Sum(nil))
	b.mu.Lock()
	defer b.mu.Unlock()
	if snap, ok := b.combined[key]; ok {
		return snap
	}
	snap, err := b.compileProject(force, paths, contents)
	if err != nil {
		b.opts.Log.Error("the policies of a project and of one inside it do not go together", "files", paths, "error", err)
	}
	if b.combined == nil || len(b.combined) >= 256 {
		b.combined = make(map[call.Digest]*policy.Snapshot)
	}
	b.combined[key] = snap
	return snap
}

// project returns the snapshot of a project, and whether its file was newly
// taken. A file that was taken away, does not load, or would loosen what was
// in force here before leaves the old one in force. One that never loaded
// denies every call until it does. The caller holds the lock.
func (b *Book) project(force *edition, path string, content []byte, readErr error) (_ *policy.Snapshot, adopted bool) {
	p := b.projects[path]
	if p == nil {
		if !b.room(len(content)) {
			b.refuse(path)
			return nil, false
		}
		p = &project{}
		b.projects[path] = p
	}
	if p.content != nil && p.head != force.snap.Hash {
		// The policy outside has changed: the same file means something else.
		snap, err := b.compileProject(force, []string{path}, [][]byte{p.content})
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
	snap, err := b.compileProject(force, []string{path}, [][]byte{content})
	if err != nil {
		b.complain(path, p, err.Error())
		return p.snap, false
	}
	if p.snap != nil && len(policy.Loosens(p.snap, snap)) > 0 && !b.trusted[trust{path, digestOf(path, content)}] {
		b.complain(path, p, "it was changed and would loosen; `gatehouse policy trust "+path+"` accepts it")
		return p.snap, false
	}
	*p = project{content: content, head: force.snap.Hash, snap: snap}
	return p.snap, true
}

// What a project's file said stays in force when the file is gone, so every
// one that was seen is kept, up to these limits. Forgetting the oldest instead
// would let an agent wash off a policy by making many others.
const (
	maxProjects     = 1024
	maxProjectBytes = 16 << 20
)

// noRoom is why a project's calls are denied.
const noRoom = "too many projects have policies of their own, so this one is not read and its calls are denied; " +
	"`gatehouse policy trust FILE` forgets one that is gone"

// room says whether another project's file can be kept. The caller holds the
// lock.
func (b *Book) room(size int) bool {
	for _, p := range b.projects {
		size += len(p.content)
	}
	return len(b.projects) < maxProjects && size <= maxProjectBytes
}

// refuse notes that there was no room for a project's file, loudly once.
func (b *Book) refuse(path string) {
	if b.refused != path {
		b.opts.Log.Error("a project's policy is not read", "file", path, "problem", noRoom)
	}
	b.refused = path
}

// compileProject compiles files of projects, and a session's own, with the
// policy outside. The caller holds the lock.
func (b *Book) compileProject(force *edition, paths []string, contents [][]byte) (*policy.Snapshot, error) {
	layers, options := append([]policy.Layer(nil), force.layers...), force.options
	for i, path := range paths {
		if isTools(path) {
			var err error
			if options.Tools, err = declared(options.Tools, []file{{Path: path, Content: contents[i], Tools: true}}); err != nil {
				return nil, err
			}
			continue
		}
		parsed, err := policy.Parse(path, contents[i])
		if err != nil {
			return nil, err
		}
		layer := policy.Layer{Scope: policy.ScopeProject, File: parsed, Trusted: b.trusted[trust{path, parsed.Digest()}]}
		if path == sessionFile {
			layer = policy.Layer{Scope: policy.ScopeSession, File: parsed}
		}
		layers = append(layers, layer)
	}
	return policy.Compile(layers, options)
}

// digestOf is the digest that an approver trusts.
func digestOf(path string, content []byte) call.Digest {
	d, err := projectDigest(path, content)
	if err != nil {
		return call.Digest{}
	}
	return d
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
	path = filepath.Join(observe.RealDir(filepath.Dir(path)), filepath.Base(path)) // as calls name it
	content, err := observe.ReadOwnFile(path, maxFile)
	if errors.Is(err, os.ErrNotExist) {
		_, err := tx.Exec(`DELETE FROM policy_files WHERE scope = $1`, projectScope+path)
		store.Notify(tx, Scope, "trust")
		return call.Digest{}, err
	}
	if err != nil {
		return call.Digest{}, err
	}
	digest, err := projectDigest(path, content)
	if err != nil {
		return call.Digest{}, err
	}
	return digest, b.writeTrust(tx, trust{path, digest}, by)
}

// projectFiles lists the policy files of the projects that a directory is in,
// the outermost first: those that are there, and those that were there once.
func (b *Book) projectFiles(dir string) []string {
	if !filepath.IsAbs(dir) {
		return nil
	}
	var paths []string
	for {
		for _, name := range []string{place.ProjectPolicy, place.ProjectTools} {
			if path := filepath.Join(dir, name); b.knows(path) || exists(path) {
				paths = append(paths, path)
			}
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			slices.Reverse(paths)
			return paths
		}
		dir = parent
	}
}

func (b *Book) knows(path string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.projects[path] != nil
}

// exists says whether something may be at a path; what cannot be looked at may
// be.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil || !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR)
}
