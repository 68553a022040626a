package rulebook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/observe"
	"github.com/seed-3ebc6b8a/gatehouse/internal/place"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/shell/knowledge"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Scope is the scope of the policy head that all nodes agree on.
const Scope = "gate"

// Source is a policy file on disk.
type Source struct {
	Scope policy.Scope
	Path  string
}

// Options is what a book is made of.
type Options struct {
	Store    *store.Store
	Keys     *keyring.Keyring
	Sessions *session.Registry
	// Sources are the machine's and the user's files; they need not exist. A
	// file of declarations of tools may lie beside each.
	Sources []Source
	// Knowledge is the directory of the user's files about programs; it need
	// not exist.
	Knowledge string
	// Compile is what the policy depends on besides its files.
	Compile policy.Options
	// Record appends an act to the log, inside its transaction.
	Record func(tx *store.Tx, act admin.Act) error
	Log    *slog.Logger
}

// Book keeps the policy in force. It is safe for concurrent use.
type Book struct {
	opts Options

	// turn is held while what is in force changes: reading the store or the
	// files, judging and adopting are several steps, and two of them side by
	// side would leave this node with a policy that is not in force any more.
	turn sync.Mutex

	mu       sync.Mutex
	force    *edition    // what is in force
	head     call.Digest // what all nodes agreed on when force was loaded
	staged   *edition    // what would loosen, and waits for an approver
	since    time.Time
	broken   []string
	trusted  map[trust]bool
	projects map[string]*project
	combined map[call.Digest]*policy.Snapshot // of projects inside projects
	sessions map[string][]byte                // policies of sessions, nil for one that has none
	refused  string                           // the last project there was no room for
}

// edition is a set of files with what they compile to.
type edition struct {
	files   []file
	layers  []policy.Layer
	snap    *policy.Snapshot
	options policy.Options
	known   []knowledge.Change // what the files about programs alter
	changes []string           // what it would loosen, if it is staged
}

// file is a policy file as it was read.
type file struct {
	Scope   policy.Scope `json:"scope"`
	Path    string       `json:"path"`
	Content []byte       `json:"content"`
	// Knowledge files are about programs, Tools files declare tools.
	Knowledge bool `json:"knowledge,omitzero"`
	Tools     bool `json:"tools,omitzero"`
}

// Open reads what is in force from the store and compares it with the files.
// In a new store the files on disk are taken as they are; if they do not load
// there is nothing to fall back on, and the gate does not start.
func Open(ctx context.Context, opts Options) (*Book, error) {
	b := &Book{opts: opts, trusted: make(map[trust]bool), projects: make(map[string]*project)}
	if err := b.load(ctx); err != nil {
		return nil, err
	}
	if b.force == nil {
		ed, err := b.read()
		if err != nil {
			return nil, fmt.Errorf("the policy does not load, and there is no earlier one to fall back on:\n%w", err)
		}
		if err := b.adopt(ctx, call.Digest{}, ed, "start"); err != nil {
			return nil, err
		}
	}
	if b.force.snap.Hash != b.head {
		// The same files mean something else to a gate of another version, or
		// that was started with other options. Both are the operator's doing.
		if err := b.adopt(ctx, b.head, b.force, "start"); err != nil {
			return nil, err
		}
	}
	return b, b.Reload(ctx)
}

// Current returns the snapshot in force outside of projects.
func (b *Book) Current() *policy.Snapshot {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.force.snap
}

// Reload compares the files on disk with what is in force. What tightens takes
// effect, what loosens is staged, what does not load is reported.
func (b *Book) Reload(ctx context.Context) error {
	b.turn.Lock()
	defer b.turn.Unlock()
	return b.judge(ctx, true)
}

// judge compares the files on disk with what is in force. Only a change of
// the files is a reason to adopt them.
func (b *Book) judge(ctx context.Context, changed bool) error {
	ed, err := b.read()
	b.mu.Lock()
	force, staged := b.force, b.staged
	b.mu.Unlock()
	if err != nil {
		b.report(err)
		return nil
	}
	if ed.snap.Hash == force.snap.Hash {
		b.settle(nil)
		return nil
	}
	ed.changes = append(loosens(force.snap, ed.snap), knowledgeLoosens(force, ed)...)
	if len(ed.changes) == 0 {
		if !changed {
			b.settle(nil)
			return nil
		}
		return b.adopt(ctx, force.snap.Hash, ed, "reload")
	}
	if staged == nil || staged.snap.Hash != ed.snap.Hash {
		b.opts.Log.Warn("a policy change that loosens is staged: an approver must accept it", "hash", ed.snap.Hash, "changes", ed.changes)
	}
	b.settle(ed)
	return nil
}

// report keeps the last good policy and says why.
func (b *Book) report(err error) {
	text := err.Error()
	b.mu.Lock()
	changed := !slices.Contains(b.broken, text)
	b.broken = []string{text}
	b.mu.Unlock()
	if changed {
		b.opts.Log.Error("the policy on disk does not load; the last good one stays in force", "problem", text)
	}
}

// settle notes that the files load, and what is staged of them.
func (b *Book) settle(staged *edition) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.broken = nil
	if staged == nil || b.staged == nil || b.staged.snap.Hash != staged.snap.Hash {
		b.since = time.Now()
	}
	b.staged = staged
}

// read reads and compiles the files on disk.
func (b *Book) read() (*edition, error) {
	files, err := b.gather("", nil)
	if err != nil {
		return nil, err
	}
	return b.compile(files)
}

// gather reads the files on disk, with other content in place of one of them.
func (b *Book) gather(instead string, content []byte) ([]file, error) {
	var files []file
	for _, s := range b.opts.Sources {
		for _, f := range []file{{Scope: s.Scope, Path: s.Path}, {Scope: s.Scope, Path: place.Tools(s.Path), Tools: true}} {
			var err error
			if f.Content = content; f.Path != instead {
				f.Content, err = observe.ReadFile(f.Path, maxFile)
			}
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
			files = append(files, f)
		}
	}
	known, err := b.readKnowledge()
	return append(files, known...), err
}

func (b *Book) compile(files []file) (*edition, error) {
	layers, err := b.layers(files)
	if err != nil {
		return nil, err
	}
	options, known, err := know(b.opts.Compile, files)
	if err != nil {
		return nil, err
	}
	if options.Tools, err = declared(nil, files); err != nil {
		return nil, err
	}
	snap, err := policy.Compile(layers, options)
	if err != nil {
		return nil, err
	}
	return &edition{files: files, layers: layers, snap: snap, options: options, known: known}, nil
}

func (b *Book) layers(files []file) ([]policy.Layer, error) {
	var layers []policy.Layer
	for _, f := range files {
		if f.Knowledge || f.Tools {
			continue
		}
		parsed, err := policy.Parse(f.Path, f.Content)
		if err != nil {
			return nil, err
		}
		layers = append(layers, policy.Layer{Scope: f.Scope, File: parsed, Trusted: b.isTrusted(trust{f.Path, parsed.Digest()})})
	}
	return layers, nil
}

func (b *Book) isTrusted(t trust) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.trusted[t]
}

// adopt puts an edition in force, in the store and then here.
func (b *Book) adopt(ctx context.Context, from call.Digest, to *edition, by string) error {
	err := b.opts.Store.Write(ctx, func(tx *store.Tx) error {
		if err := b.write(tx, from, to, by); err != nil {
			return err
		}
		return b.opts.Record(tx, admin.Act{Name: "policy." + by, By: "gatehouse", Channel: "file", Subject: to.snap.Hash.String(), Detail: paths(to.files)})
	})
	if errors.Is(err, session.ErrMoved) {
		return b.load(ctx) // another node was faster
	}
	if err != nil {
		return err
	}
	b.mu.Lock()
	b.force, b.head = to, to.snap.Hash
	b.mu.Unlock()
	b.settle(nil)
	return nil
}

func paths(files []file) []string {
	out := make([]string, len(files))
	for i, f := range files {
		out[i] = f.Path
	}
	return out
}

// Accept puts the staged change in force, inside an approver's transaction.
func (b *Book) Accept(tx *store.Tx, hash call.Digest, by string) error {
	b.mu.Lock()
	force, staged := b.force, b.staged
	b.mu.Unlock()
	if staged == nil || staged.snap.Hash != hash {
		return errNotStaged
	}
	return b.write(tx, force.snap.Hash, staged, by)
}

// Adopted loads what an approver's transaction, here or on another node, put
// in force. The files of this node, which were judged when they changed, do
// not take its place: two nodes whose files differ would take turns for ever.
func (b *Book) Adopted(ctx context.Context) error {
	b.turn.Lock()
	defer b.turn.Unlock()
	if err := b.load(ctx); err != nil {
		return err
	}
	b.mu.Lock()
	here, head := b.force.snap.Hash, b.head
	b.mu.Unlock()
	if here != head {
		b.opts.Log.Error("this node makes another policy of the files in force than the node that put them there, and denies every call: start all nodes with the same version and options", "head", head, "here", here)
	}
	return b.judge(ctx, false)
}

// Follow loads what is in force if this node holds something else: a notice
// of the change may have been lost on the way. It says whether it did.
func (b *Book) Follow(ctx context.Context) (moved bool, err error) {
	var head session.Head
	err = b.opts.Store.Read(ctx, func(tx *store.Tx) (err error) {
		head, err = b.opts.Sessions.PolicyHead(tx, Scope)
		return err
	})
	if err != nil || head.Hash == b.Current().Hash {
		return false, err
	}
	return true, b.Adopted(ctx)
}

// notStaged is what an approver hears who accepts something that is gone.
type notStaged struct{}

func (notStaged) Error() string {
	return "this change is not staged (any more): look at the policy again"
}
func (notStaged) Public() string { return notStaged{}.Error() }

var errNotStaged = notStaged{}

// Status tells what is in force, what did not load and what waits.
func (b *Book) Status() admin.Policy {
	b.mu.Lock()
	defer b.mu.Unlock()
	set := &b.force.snap.Settings
	p := admin.Policy{Hash: b.force.snap.Hash, Profile: set.Profile, Mode: "enforce", Files: paths(b.force.files), Broken: slices.Clone(b.broken)}
	if set.Observe {
		p.Mode = "observe"
	}
	if b.staged != nil {
		p.Staged = &admin.StagedPolicy{Hash: b.staged.snap.Hash, Changes: b.staged.changes, Since: b.since}
	}
	for path, pr := range b.projects {
		if pr.problem != "" {
			p.Broken = append(p.Broken, path+": "+pr.problem)
		}
	}
	if b.refused != "" {
		p.Broken = append(p.Broken, b.refused+": "+noRoom)
	}
	slices.Sort(p.Broken)
	return p
}

func loosens(old, candidate *policy.Snapshot) []string {
	var out []string
	for _, c := range policy.Loosens(old, candidate) {
		out = append(out, c.String())
	}
	return out
}
