package rulebook

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/seed-3ebc6b8a/gatehouse/internal/argument"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/place"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
	"github.com/seed-3ebc6b8a/gatehouse/tool/declare"
)

// What files declare about tools is policy: a tool that is declared narrower is
// held to it at once, and a declaration that is widened or taken away waits for
// an approver.

// declared parses the files of declarations among files, after those that
// there are already.
func declared(have []argument.File, files []file) ([]argument.File, error) {
	out := slices.Clone(have)
	for _, f := range files {
		if !f.Tools {
			continue
		}
		set, err := declare.Parse(f.Content)
		if err != nil {
			return nil, fmt.Errorf("%s: what it declares about tools does not load:\n%w", f.Path, err)
		}
		out = append(out, argument.File{Source: f.Path, Set: set})
	}
	return out, nil
}

// isTools says whether a project's file declares tools.
func isTools(path string) bool { return filepath.Base(path) == place.ProjectTools }

// projectDigest is what an approver trusts of a project's file.
func projectDigest(path string, content []byte) (call.Digest, error) {
	if isTools(path) {
		if _, err := declare.Parse(content); err != nil {
			return call.Digest{}, err
		}
		return sha256.Sum256(content), nil
	}
	parsed, err := policy.Parse(path, content)
	if err != nil {
		return call.Digest{}, err
	}
	return parsed.Digest(), nil
}
