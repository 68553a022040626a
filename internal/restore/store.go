package restore

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
)

// Limits cap what is kept.
type Limits struct {
	// Bytes and Files cap one point.
	Bytes int64
	Files int
	// Total, Points and Age cap all points together.
	Total  int64
	Points int
	Age    time.Duration
	// Batch is how long a batch lasts at most.
	Batch time.Duration
}

// DefaultLimits are the limits of a gate.
func DefaultLimits() Limits {
	return Limits{Bytes: 64 << 20, Files: 5000, Total: 1 << 30, Points: 500, Age: 14 * 24 * time.Hour, Batch: 10 * time.Minute}
}

// Options is what a store is made of.
type Options struct {
	// Dir is where points are kept, outside of everything an agent writes.
	Dir string
	// Sign makes a signature of a point's list.
	Sign func([]byte) []byte
	// NewID returns a new unique id for a point.
	NewID func() string
	// Now is the clock.
	Now func() time.Time
	// Limits says what the limits are at the moment; nil takes the defaults.
	Limits func() Limits
}

// Store keeps restore points. It is safe for concurrent use.
type Store struct {
	opts Options

	mu      sync.Mutex
	batches map[string]*Point // by session
}

// Open opens a store; its directory is made when it is needed.
func Open(opts Options) *Store {
	if opts.Limits == nil {
		opts.Limits = DefaultLimits
	}
	return &Store{opts: opts, batches: make(map[string]*Point)}
}

// Point is one restore point.
type Point struct {
	ID      string `json:"id"`
	Agent   string `json:"agent,omitzero"`
	Session string `json:"session,omitzero"`
	// By is the approver whose own act the point undoes, "" for agents' calls.
	By string `json:"by,omitzero"`
	// Made is when the batch began, Ended when it was or will be over.
	Made  time.Time `json:"made"`
	Ended time.Time `json:"ended"`
	// Calls are the calls of the batch for which something was kept.
	Calls   []string `json:"calls,omitzero"`
	Roots   []string `json:"roots"`
	Entries []Entry  `json:"entries"`
	// NotKept says what the calls changed and is not here, and why.
	NotKept []string `json:"not_kept,omitzero"`
	Bytes   int64    `json:"bytes"`
}

// Subject is what is about to be changed, and by whom.
type Subject struct {
	Agent, Session, Call, By string
	// Paths are absolute and without links.
	Paths []string
	// Blind says that it changes more than its words tell.
	Blind bool
}

// blindNote says that nobody can keep what nobody can name.
const blindNote = "what it changes cannot be told from its words"

// Preview says what of a subject's changes would not be kept, and why.
func (s *Store) Preview(sub Subject) (notKept []string) {
	c := &collector{limits: s.opts.Limits()}
	for _, p := range sub.Paths {
		if why, _ := c.add(p); why != "" { // without keeping nothing of ours fails
			notKept = append(notKept, why)
		}
	}
	if sub.Blind {
		notKept = append(notKept, blindNote)
	}
	return notKept
}

// Keep copies what is at the subject's paths, unless its batch has done so
// already. It returns the point and what could not be kept; an error means that
// the store itself failed, and then nothing may be changed.
func (s *Store) Keep(sub Subject) (point string, notKept []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.batch(&sub)
	if err != nil {
		return "", nil, err
	}
	c := &collector{limits: s.opts.Limits(), keep: s.save, bytes: p.Bytes, entries: slices.Clone(p.Entries)}
	var roots []string
	for _, path := range sub.Paths {
		if p.covers(path) || slices.Contains(roots, path) {
			continue
		}
		why, err := c.add(path)
		if err != nil {
			return "", nil, err
		}
		if why != "" {
			notKept = append(notKept, why)
			continue
		}
		roots = append(roots, path)
	}
	if sub.Blind {
		notKept = append(notKept, blindNote)
	}
	if len(roots) == 0 {
		if len(p.Roots) == 0 {
			return "", notKept, nil // nothing to keep is no point
		}
		return p.ID, notKept, nil
	}
	next := *p
	next.Entries, next.Bytes = c.entries, c.bytes
	next.Roots = append(slices.Clone(p.Roots), roots...)
	next.Calls = append(slices.Clone(p.Calls), sub.Call)
	for _, why := range notKept {
		if !slices.Contains(next.NotKept, why) {
			next.NotKept = append(slices.Clone(next.NotKept), why)
		}
	}
	if err := s.write(&next); err != nil {
		return "", nil, err
	}
	begun := len(p.Roots) == 0
	*p = next
	if begun {
		return p.ID, notKept, s.prune(p.ID)
	}
	return p.ID, notKept, nil
}

// batch returns the point of the session's batch, a new one if it is over.
func (s *Store) batch(sub *Subject) (*Point, error) {
	now := s.opts.Now()
	if p := s.batches[sub.Session]; p != nil && sub.Session != "" && now.Before(p.Ended) {
		return p, nil
	}
	p := &Point{ID: s.opts.NewID(), Agent: sub.Agent, Session: sub.Session, By: sub.By, Made: now, Ended: now.Add(s.opts.Limits().Batch)}
	if p.ID == "" {
		return nil, &ownError{errors.New("no id")}
	}
	if len(s.batches) > 10_000 {
		clear(s.batches) // sessions that are long gone; a new batch costs a copy
	}
	if sub.Session != "" {
		s.batches[sub.Session] = p
	}
	return p, nil
}

// Asked ends the batch of a session: what a person answers from now on is
// another one.
func (s *Store) Asked(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.batches[session]
	if p == nil {
		return
	}
	delete(s.batches, session)
	if now := s.opts.Now(); len(p.Roots) > 0 && now.Before(p.Ended) {
		p.Ended = now
		_ = s.write(p) // the point is whole without it; only "newer" would be judged by the later time
	}
}

// covers says whether a path is kept already.
func (p *Point) covers(path string) bool {
	return slices.ContainsFunc(p.Roots, func(root string) bool {
		return path == root || strings.HasPrefix(path, strings.TrimSuffix(root, "/")+"/")
	})
}

// save keeps the content of a file under its hash.
func (s *Store) save(f *os.File) (hash string, size int64, err error) {
	dir := filepath.Join(s.opts.Dir, "blobs")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", 0, &ownError{err}
	}
	tmp, err := os.CreateTemp(dir, ".new-")
	if err != nil {
		return "", 0, &ownError{err}
	}
	defer os.Remove(tmp.Name()) // once it has its name this finds nothing
	defer tmp.Close()
	h := sha256.New()
	// A file that grows while it is copied does not go on for ever.
	size, err = io.Copy(io.MultiWriter(&ownWriter{tmp}, h), io.LimitReader(f, s.opts.Limits().Bytes+1))
	if err != nil {
		return "", 0, err
	}
	if size > s.opts.Limits().Bytes {
		return "", 0, errLimit
	}
	hash = hex.EncodeToString(h.Sum(nil))
	if err := errors.Join(tmp.Sync(), tmp.Close(), os.Rename(tmp.Name(), filepath.Join(dir, hash))); err != nil {
		return "", 0, &ownError{err}
	}
	return hash, size, nil
}

// ownWriter tells a failure to write the copy from one to read the original.
type ownWriter struct{ w io.Writer }

func (o *ownWriter) Write(b []byte) (int, error) {
	n, err := o.w.Write(b)
	if err != nil {
		err = &ownError{err}
	}
	return n, err
}

// signed is a point as it lies on disk.
type signed struct {
	Point     Point  `json:"point"`
	Signature []byte `json:"signature"`
}

func (s *Store) sign(p *Point) ([]byte, error) {
	text, err := json.Marshal(p, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	return s.opts.Sign(text), nil
}

// write puts a point on disk, whole or not at all.
func (s *Store) write(p *Point) error {
	sum, err := s.sign(p)
	if err != nil {
		return &ownError{err}
	}
	text, err := json.Marshal(signed{*p, sum})
	if err != nil {
		return &ownError{err}
	}
	dir := filepath.Join(s.opts.Dir, "points")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return &ownError{err}
	}
	tmp, err := os.CreateTemp(dir, ".new-")
	if err != nil {
		return &ownError{err}
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(text)
	if err := errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return &ownError{err}
	}
	if err := os.Rename(tmp.Name(), filepath.Join(dir, p.ID+".json")); err != nil {
		return &ownError{err}
	}
	return nil
}

// ErrNone is the answer to an id that is no point's.
var ErrNone = errors.New("there is no such restore point (any more)")

// Point reads a point.
func (s *Store) Point(id string) (*Point, error) {
	if id == "" || strings.ContainsAny(id, `/\.`) {
		return nil, ErrNone
	}
	text, err := os.ReadFile(filepath.Join(s.opts.Dir, "points", id+".json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, ErrNone
	}
	if err != nil {
		return nil, err
	}
	var p signed
	if err := json.Unmarshal(text, &p); err != nil {
		return nil, fmt.Errorf("the restore point %s cannot be read: %w", id, err)
	}
	sum, err := s.sign(&p.Point)
	if err != nil || !hmac.Equal(sum, p.Signature) || p.Point.ID != id {
		return nil, fmt.Errorf("the restore point %s was not made by this gate, or changed since", id)
	}
	return &p.Point, nil
}

// List returns all points, the newest first. One that cannot be read is left
// out and reported.
func (s *Store) List() (list []*Point, problems []string, err error) {
	names, err := os.ReadDir(filepath.Join(s.opts.Dir, "points"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	for _, n := range names {
		id, ok := strings.CutSuffix(n.Name(), ".json")
		if !ok {
			continue
		}
		p, err := s.Point(id)
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b *Point) int { return b.Made.Compare(a.Made) })
	return list, problems, nil
}

// prune forgets the oldest points until the rest is within the limits, and
// then the contents that no point needs. The newest stays.
func (s *Store) prune(newest string) error {
	list, _, err := s.List()
	if err != nil {
		return &ownError{err}
	}
	oldest := s.opts.Now().Add(-s.opts.Limits().Age)
	var total int64
	var gone bool
	needed := make(map[string]bool)
	for i, p := range list {
		total += p.Bytes
		if p.ID != newest && (total > s.opts.Limits().Total || i >= s.opts.Limits().Points || p.Made.Before(oldest)) {
			total -= p.Bytes
			gone = true
			if err := os.Remove(filepath.Join(s.opts.Dir, "points", p.ID+".json")); err != nil {
				return &ownError{err}
			}
			continue
		}
		for _, e := range p.Entries {
			needed[e.Hash] = true
		}
	}
	if !gone {
		return nil
	}
	blobs, err := os.ReadDir(filepath.Join(s.opts.Dir, "blobs"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return &ownError{err}
	}
	for _, b := range blobs {
		if !needed[b.Name()] {
			if err := os.Remove(filepath.Join(s.opts.Dir, "blobs", b.Name())); err != nil {
				return &ownError{err}
			}
		}
	}
	return nil
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
