package observe

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
	"github.com/seed-3ebc6b8a/gatehouse/internal/match"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
	"github.com/seed-3ebc6b8a/gatehouse/internal/shell"
)

// Machine is this machine. It is safe for concurrent use.
type Machine struct {
	// Home is the agents' home directory.
	Home string
	// Own is where the gate lives.
	Own facts.Own

	mu      sync.Mutex
	implied map[call.Digest][]facts.Implied // by policy snapshot
}

// Facts describes the call in the world as it is now.
func (m *Machine) Facts(_ context.Context, c *call.Call, s *policy.Snapshot) *facts.Facts {
	opts := &facts.Options{Home: m.Home, Own: m.Own, Implied: m.impliedBy(s)}
	if s != nil {
		opts.Tools = s.Settings.Tools
		opts.Watched = s.Watches
		opts.Knowledge, opts.Declared = s.Knowledge, s.Declared
		opts.ScoreProfile, opts.Weights = s.Settings.Dispatch.Profile, s.Settings.Dispatch.Weigh()
	}
	return facts.Extract(c, newView(), opts)
}

// impliedBy compiles what the policy says implies a capability, once per
// snapshot.
func (m *Machine) impliedBy(s *policy.Snapshot) []facts.Implied {
	if s == nil || len(s.Settings.Capabilities) == 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if list, ok := m.implied[s.Hash]; ok {
		return list
	}
	var list []facts.Implied
	for name, def := range s.Settings.Capabilities {
		i := facts.Implied{Capability: name, Fields: globs(def.Fields), Tools: globs(def.Tools), Variables: globs(def.Variables)}
		// The file was checked when it was loaded; what does not compile here
		// would have been refused there.
		i.Paths, _ = match.CompileSet(match.Base{Dir: "/", Home: m.Home}, def.Paths...)
		list = append(list, i)
	}
	if len(m.implied) > 64 {
		m.implied = nil // old snapshots
	}
	if m.implied == nil {
		m.implied = make(map[call.Digest][]facts.Implied)
	}
	m.implied[s.Hash] = list
	return list
}

func globs(patterns []string) []match.OpGlob {
	var out []match.OpGlob
	for _, p := range patterns {
		if g, err := match.CompileOp(p); err == nil {
			out = append(out, g)
		}
	}
	return out
}

// RealDir returns the directory with all links followed. A directory that is
// not there is returned cleaned: the call may be about another machine.
func RealDir(dir string) string {
	if dir == "" {
		return ""
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	return filepath.Clean(dir)
}

// Root identifies a workspace as the needs of a call do: its real path, and
// what is there.
func Root(dir string) string { return dir + " " + identify(dir) }

// view is the world as one call sees it.
type view struct {
	links        map[string]link
	identities   map[string]string
	repositories map[string]shell.Repository
	read         map[string]bool // files whose content a description rests on
	unsaved      map[string][]facts.Work
}

type link struct {
	target string
	is     bool
	err    error
}

func newView() *view {
	return &view{
		links: make(map[string]link), identities: make(map[string]string),
		repositories: make(map[string]shell.Repository), read: make(map[string]bool), unsaved: make(map[string][]facts.Work),
	}
}

// Readlink returns the target of a symbolic link.
func (v *view) Readlink(path string) (target string, is bool, err error) {
	if l, ok := v.links[path]; ok {
		return l.target, l.is, l.err
	}
	l := readlink(path)
	v.links[path] = l
	return l.target, l.is, l.err
}

func readlink(path string) link {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return link{}
	case err != nil:
		return link{err: err}
	case info.Mode()&fs.ModeSymlink == 0:
		return link{}
	}
	target, err := os.Readlink(path)
	return link{target: target, is: err == nil, err: err}
}

// Identify says what is at a path, so precisely that a change shows.
func (v *view) Identify(path string) string {
	if id, ok := v.identities[path]; ok {
		return id
	}
	id := identify(path)
	v.identities[path] = id
	return id
}

// Read lists the files whose content the description rests on.
func (v *view) Read() []string { return slices.Sorted(maps.Keys(v.read)) }

// maxHash is the largest file that is hashed; larger ones are identified by
// size and time of change.
const maxHash = 16 << 20

func identify(path string) string {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	if err != nil {
		return "unreadable"
	}
	id := info.Mode().Type().String() + " " + inode(info)
	if !info.Mode().IsRegular() {
		return id
	}
	if info.Size() > maxHash {
		return fmt.Sprintf("%s size %d changed %d", id, info.Size(), info.ModTime().UnixNano())
	}
	sum, err := hash(path)
	if err != nil {
		return fmt.Sprintf("%s size %d changed %d unreadable", id, info.Size(), info.ModTime().UnixNano())
	}
	return id + " sha256 " + sum
}

func hash(path string) (string, error) {
	// It was a regular file a moment ago; it may be a pipe by now.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(f, maxHash+1)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
