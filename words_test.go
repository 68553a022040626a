package gatehouse_test

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// forbidden is what no file of the repository may hold. The patterns are
// written so that they do not match themselves.
var forbidden = []struct {
	pattern *regexp.Regexp
	because string
	// except are folders and files where it is the subject of a test.
	except []string
}{
	{
		pattern: regexp.MustCompile(`/[w]ork/(main|wt-|shared|\.library)|/[r]oot/(go/|\.cache/)|/tmp/([b]ash_jobs|[g]h-)`),
		because: "a path of one machine",
	},
	{
		pattern: regexp.MustCompile(`(?i)\b(proxy|sum)\.[g]olang\.org|registry\.[n]pmjs\.org|(deb|ftp)\.[d]ebian\.org|security\.[d]ebian\.org|\b[p]ypi\.org|[p]ythonhosted\.org`),
		because: "the address of a package registry: the ordinary clients know theirs",
	},
	{
		pattern: regexp.MustCompile(`(?i)co-authored[-]by:|\b(generated|written|made|created) (by|with) (an? |the )?(ai|llm|language model|assistant|claude|chatgpt|gpt|codex|copilot|gemini)\b`),
		because: "a word on how this was written: say what it is instead",
	},
	{
		pattern: regexp.MustCompile(`(?i)\bas an ai (language )?[m]odel\b|\b(ai|llm)-[g]enerated\b`),
		because: "a word on how this was written: say what it is instead",
	},
	{
		pattern: regexp.MustCompile(`\b(ATTACKS|STYLE|DESIGN)\.[m]d\b|\bshared/([r]esearch|[s]eeds)\b`),
		because: "a file that is not in the repository: docs has its counterpart, or say it here",
	},
}

// TestNoForbiddenWords reads every file that is, or would be, committed.
func TestNoForbiddenWords(t *testing.T) {
	t.Parallel()
	for _, name := range committed(t) {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.IndexByte(data[:min(len(data), 8000)], 0) >= 0 {
			continue // a picture or the like
		}
		forbiddenWords(name, data, t.Errorf)
	}
}

func forbiddenWords(name string, data []byte, report reporter) {
	for _, f := range forbidden {
		if slices.ContainsFunc(f.except, func(e string) bool { return under(name, e) }) {
			continue
		}
		for _, at := range f.pattern.FindAllIndex(data, 5) {
			report("%s:%d: %q is %s", name, 1+bytes.Count(data[:at[0]], []byte("\n")), data[at[0]:at[1]], f.because)
		}
	}
	for _, place := range thisMachine() {
		if i := bytes.Index(data, []byte(place)); i >= 0 {
			report("%s:%d: %q is a path of this machine", name, 1+bytes.Count(data[:i], []byte("\n")), place)
		}
	}
}

// thisMachine lists folders that are only here: the work tree and Go's caches.
// A short path, as in a container, could be anything and is left out.
var thisMachine = sync.OnceValue(func() []string {
	var out []string
	if root, err := os.Getwd(); err == nil {
		out = append(out, root)
	}
	if cache, err := exec.Command("go", "env", "GOMODCACHE", "GOCACHE").Output(); err == nil {
		out = append(out, strings.Fields(string(cache))...)
	}
	return slices.DeleteFunc(out, func(p string) bool {
		return len(p) < len("/home/me") || strings.Count(filepath.ToSlash(p), "/") < 2
	})
})

// committed lists the files that git tracks or would add, and where there is
// no git all files that are not hidden.
func committed(t *testing.T) []string {
	t.Helper()
	var names []string
	if _, err := os.Stat(".git"); err == nil {
		if out, err := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output(); err == nil {
			for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
				// A file that was removed and not yet committed is still listed.
				if info, err := os.Lstat(name); err == nil && info.Mode().IsRegular() {
					names = append(names, name)
				}
			}
			return names
		}
	}
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && p != "." && strings.HasPrefix(d.Name(), ".") && d.Name() != ".ci":
			return fs.SkipDir
		case d.Type().IsRegular():
			names = append(names, filepath.ToSlash(p))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

var link = regexp.MustCompile(`\]\(([^)\s#]+)(#[^)\s]*)?\)`)

// TestDocumentsPointSomewhere follows the relative links of the documents.
func TestDocumentsPointSomewhere(t *testing.T) {
	t.Parallel()
	for _, name := range committed(t) {
		if filepath.Ext(name) != ".md" || strings.Contains(name, "testdata/") {
			continue
		}
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllSubmatch(data, -1) {
			target := string(m[1])
			if strings.Contains(target, ":") {
				continue // an address
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(name), filepath.FromSlash(target))); err != nil {
				t.Errorf("%s: the link to %s points nowhere", name, target)
			}
		}
	}
}

// TestDocumentsAreListed keeps the index of docs complete.
func TestDocumentsAreListed(t *testing.T) {
	t.Parallel()
	index, err := os.ReadFile("docs/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range committed(t) {
		rel, ok := strings.CutPrefix(name, "docs/")
		if ok && filepath.Ext(name) == ".md" && rel != "README.md" && !bytes.Contains(index, []byte("]("+rel+")")) {
			t.Errorf("docs/README.md does not list %s", rel)
		}
	}
}
