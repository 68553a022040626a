package gitobj

import (
	"bytes"
	"container/heap"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Commit is what of a commit matters here.
type Commit struct {
	Tree    Hash
	Parents []Hash
	// Time is when it was made, in seconds since 1970, by its own word.
	Time int64
}

// Commit reads a commit.
func (s *Store) Commit(h Hash) (c Commit, err error) {
	data, err := s.read(h, kindCommit)
	if err != nil {
		return c, err
	}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			break
		}
		key, value, _ := strings.Cut(line, " ")
		switch key {
		case "tree":
			c.Tree, err = ParseHash(value)
		case "parent":
			var p Hash
			p, err = ParseHash(value)
			c.Parents = append(c.Parents, p)
		case "committer":
			if words := strings.Fields(value); len(words) >= 2 {
				c.Time, _ = strconv.ParseInt(words[len(words)-2], 10, 64) // only an order to look in
			}
		}
		if err != nil {
			return Commit{}, err
		}
	}
	if c.Tree.IsZero() {
		return Commit{}, fmt.Errorf("%w: %s has no tree", ErrFormat, h)
	}
	return c, nil
}

// maxFiles bounds the files of a commit that are listed.
const maxFiles = 200_000

// Files lists the files of a tree, by their path, below prefix: "" is all of
// them, else a directory or file without a slash at its end. Submodules are
// left out: they are repositories of their own.
func (s *Store) Files(tree Hash, prefix string) (map[string]Hash, error) {
	files := make(map[string]Hash)
	return files, s.files(tree, "", prefix, files, 0)
}

func (s *Store) files(tree Hash, dir, prefix string, files map[string]Hash, depth int) error {
	if depth > 256 || len(files) > maxFiles {
		return ErrLimit
	}
	data, err := s.read(tree, kindTree)
	if err != nil {
		return err
	}
	for len(data) > 0 {
		head, rest, ok := bytes.Cut(data, []byte{0})
		mode, name, spaced := strings.Cut(string(head), " ")
		if !ok || !spaced || name == "" || strings.Contains(name, "/") || len(rest) < len(Hash{}) {
			return fmt.Errorf("%w: the tree %s", ErrFormat, tree)
		}
		h := Hash(rest[:len(Hash{})])
		data = rest[len(Hash{}):]
		path := dir + name
		switch {
		case !onTheWay(path, prefix) || mode == "160000":
		case mode == "40000" || mode == "040000":
			if err := s.files(h, path+"/", prefix, files, depth+1); err != nil {
				return err
			}
		default:
			files[path] = h
		}
	}
	return nil
}

// onTheWay says whether a path is prefix, below it, or leads to it.
func onTheWay(path, prefix string) bool {
	return prefix == "" || path == prefix || strings.HasPrefix(path, prefix+"/") || strings.HasPrefix(prefix, path+"/")
}

// maxCommits bounds how many commits are walked.
const maxCommits = 5000

// Missing lists the commits that lead to one of the tips and to none of those
// known, newest first.
func (s *Store) Missing(tips, known []Hash) ([]Hash, error) {
	w := &walk{store: s, known: make(map[Hash]bool), seen: make(map[Hash]bool)}
	for _, h := range known {
		if err := w.push(h, true); err != nil {
			return nil, err
		}
	}
	for _, h := range tips {
		if err := w.push(h, false); err != nil {
			return nil, err
		}
	}
	var order []Hash
	// As long as there is one that may lead nowhere known; its own time only
	// says in which order to look, so a wrong one costs work and no answer.
	for w.open > 0 {
		e := heap.Pop(&w.queue).(entry)
		known := w.known[e.hash]
		if !known {
			w.open--
			order = append(order, e.hash)
		}
		for _, p := range e.commit.Parents {
			if err := w.push(p, known); err != nil {
				return nil, err
			}
		}
	}
	// What is left in the queue is known; what it leads to may have been
	// counted before that was found out, where the times are wrong.
	if err := w.settle(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(order, func(h Hash) bool { return w.known[h] }), nil
}

// walk goes through history from the newest commit on.
type walk struct {
	store *Store
	queue queue
	known map[Hash]bool
	seen  map[Hash]bool
	open  int // how many in the queue are not known
}

type entry struct {
	hash   Hash
	commit Commit
}

func (w *walk) push(h Hash, known bool) error {
	if w.seen[h] {
		if known && !w.known[h] {
			return w.mark(h)
		}
		return nil
	}
	if len(w.seen) >= maxCommits {
		return ErrLimit
	}
	c, err := w.store.Commit(h)
	if err != nil {
		return err
	}
	w.seen[h] = true
	if known {
		w.known[h] = true
	} else {
		w.open++
	}
	heap.Push(&w.queue, entry{h, c})
	return nil
}

// mark notes that a commit which was seen already is known, and with it all
// that it leads to among those seen.
func (w *walk) mark(h Hash) error {
	todo := []Hash{h}
	for len(todo) > 0 {
		h, todo = todo[len(todo)-1], todo[:len(todo)-1]
		if w.known[h] || !w.seen[h] {
			continue
		}
		w.known[h] = true
		if slices.ContainsFunc(w.queue, func(e entry) bool { return e.hash == h }) {
			w.open--
		}
		c, err := w.store.Commit(h)
		if err != nil {
			return err
		}
		todo = append(todo, c.Parents...)
	}
	return nil
}

// settle follows what is left in the queue, all of it known, as far as it was
// seen.
func (w *walk) settle() error {
	for _, e := range w.queue {
		for _, p := range e.commit.Parents {
			if w.seen[p] && !w.known[p] {
				if err := w.mark(p); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// queue is a heap of commits, the newest first.
type queue []entry

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].commit.Time > q[j].commit.Time }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }

// Push adds an entry, for package heap.
func (q *queue) Push(x any) { *q = append(*q, x.(entry)) }

// Pop takes the last entry, for package heap.
func (q *queue) Pop() any {
	old := *q
	e := old[len(old)-1]
	*q = old[:len(old)-1]
	return e
}
