package rulebook

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/observe"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
	"github.com/seed-3ebc6b8a/gatehouse/internal/shell"
	"github.com/seed-3ebc6b8a/gatehouse/internal/shell/knowledge"
)

// What a user's files say about programs decides what is safe, so they are
// policy: what is in force is kept in the store, a file on disk is a proposal,
// and one that may loosen waits for an approver.

// maxKnowledge is how many files about programs are read.
const maxKnowledge = 100

// readKnowledge reads the user's files about programs.
func (b *Book) readKnowledge() ([]file, error) {
	if b.opts.Knowledge == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(b.opts.Knowledge)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var files []file
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".toml") {
			continue
		}
		if len(files) >= maxKnowledge {
			return nil, fmt.Errorf("%s: more than %d files", b.opts.Knowledge, maxKnowledge)
		}
		path := filepath.Join(b.opts.Knowledge, e.Name())
		content, err := observe.ReadFile(path, maxFile)
		if err != nil {
			return nil, err
		}
		files = append(files, file{Scope: policy.ScopeUser, Path: path, Content: content, Knowledge: true})
	}
	return files, nil
}

// know compiles the files about programs into the options of a policy, and
// says which of them may loosen.
func know(opts policy.Options, files []file) (policy.Options, []knowledge.Change, error) {
	texts := make(map[string][]byte)
	h := sha256.New()
	for _, f := range files {
		if f.Knowledge {
			texts[filepath.Base(f.Path)] = f.Content
			fmt.Fprintf(h, "%q %x\n", filepath.Base(f.Path), sha256.Sum256(f.Content))
		}
	}
	if len(texts) == 0 {
		return opts, nil, nil
	}
	kb, changes, err := knowledge.LoadFiles(texts)
	if err != nil {
		return opts, nil, fmt.Errorf("what the files say about programs does not load:\n%w", err)
	}
	if wrong := shell.CheckExamples(kb); len(wrong) > 0 {
		return opts, nil, fmt.Errorf("what the files say about programs does not hold:\n%s", strings.Join(wrong, "\n"))
	}
	opts.Knowledge, opts.KnowledgeHash = kb, [32]byte(h.Sum(nil))
	return opts, changes, nil
}

// knowledgeLoosens says what of a change to the files about programs may
// loosen: a file that is gone or different, because what it added to a program
// is not there any more, and every entry that is more than an addition.
func knowledgeLoosens(old, candidate *edition) (out []string) {
	same := func(f file, in []file) bool {
		return slices.ContainsFunc(in, func(g file) bool { return g.Knowledge && g.Path == f.Path && bytes.Equal(g.Content, f.Content) })
	}
	fresh := make(map[string]bool)
	for _, f := range candidate.files {
		fresh[filepath.Base(f.Path)] = f.Knowledge && !same(f, old.files)
	}
	for _, f := range old.files {
		if f.Knowledge && !same(f, candidate.files) {
			out = append(out, "knowledge: "+filepath.Base(f.Path)+" is changed or taken away")
		}
	}
	for _, c := range candidate.known {
		if c.Looser && fresh[c.File] {
			out = append(out, fmt.Sprintf("knowledge: %s: %s (%s)", c.File, c.Why, c.Program))
		}
	}
	return out
}
