package rulebook

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
	"github.com/seed-3ebc6b8a/gatehouse/internal/observe"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
)

// Propose prepares a rule that lets a call through without asking, at the end
// of the user's file. It fails if the rule would not be enough. Writing it, with
// the function that is returned, changes the file on disk and nothing else:
// because it loosens it is staged, until an approver accepts it.
func (b *Book) Propose(c *call.Call, f *facts.Facts, scopes []call.Need, by, comment string) (*admin.Proposal, error) {
	rule, err := policy.NeverAsk(c, f, scopes, by)
	if err != nil {
		return nil, err
	}
	path := b.userFile()
	if path == "" {
		return nil, errors.New("there is no user's policy file to write to")
	}
	before, err := observe.ReadFile(path, maxFile)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	after, err := policy.AppendRule(before, rule, comment)
	if err != nil {
		return nil, err
	}
	if err := b.enough(path, after, c, f); err != nil {
		return nil, err
	}
	only, err := policy.AppendRule([]byte("\n"), rule, comment)
	if err != nil {
		return nil, err
	}
	p := &admin.Proposal{Path: path, Rule: rule.Name, Text: string(only)}
	p.Write = func(ctx context.Context) error {
		if err := replaceFile(path, before, after); err != nil {
			return err
		}
		if err := b.Reload(ctx); err != nil {
			return err
		}
		if s := b.Status().Staged; s != nil {
			p.Staged = s.Hash
		}
		return nil
	}
	return p, nil
}

// userFile is the file that is the user's own.
func (b *Book) userFile() string {
	for _, s := range b.opts.Sources {
		if s.Scope == policy.ScopeUser {
			return s.Path
		}
	}
	return ""
}

// enough checks that the policy with the new file lets the call through.
func (b *Book) enough(path string, content []byte, c *call.Call, f *facts.Facts) error {
	files, err := b.gather(path, content)
	if err != nil {
		return err
	}
	ed, err := b.compile(files)
	if err != nil {
		return &policy.NeverAskError{Reason: fmt.Sprintf("the policy with it does not load: %v", err)}
	}
	d := ed.snap.Decide(&policy.Input{Call: c, Facts: f, Digest: c.Digest()}, nil)
	if d.Level != call.AutoApprove {
		return &policy.NeverAskError{Reason: d.Why()}
	}
	return nil
}

// replaceFile puts new content in place of a file, whole, if it is still what
// was read.
func replaceFile(path string, before, after []byte) error {
	now, err := observe.ReadFile(path, maxFile)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if string(now) != string(before) {
		return &policy.NeverAskError{Reason: "the policy file was changed meanwhile; try again"}
	}
	mode := os.FileMode(0o600)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".policy-")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // once it has its name this finds nothing
	_, err = tmp.Write(after)
	if err := errors.Join(err, tmp.Chmod(mode), tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
