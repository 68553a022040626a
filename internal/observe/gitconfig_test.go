package observe_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/seed-3ebc6b8a/gatehouse/internal/needtest"
	"github.com/seed-3ebc6b8a/gatehouse/internal/observe"
)

// pieces are what configurations are made of, and what misleads a reader that
// looks for lines.
var pieces = []string{
	"[core]", "[user]", "[filter \"a\"]", "[filter \"a][user]\"]", "[Filter \"A\\\"b\"]", "[old.Name]", "[CORE]", "[a b]", "[a",
	"fsmonitor", "FSMonitor", "clean", "x-1", "1x", " = ", "=", "value", "\"quoted ; # \"", "\"open", "\\\n", "\\", "\\\\", "\\t", "\\q",
	"# comment \\", "; comment [core]", "\n", "\n", "\n", "\t", " ", "\r\n", "\r", "\ufeff", "]", "[user]",
}

// TestGitConfigReadsWhatGitReads compares with git: it lists a file's settings
// and runs nothing of them.
func TestGitConfigReadsWhatGitReads(t *testing.T) {
	t.Parallel()
	git := needtest.OneOf(t, "git")
	file := filepath.Join(t.TempDir(), "config")
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 12).Draw(t, "pieces"), "")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, gitErr := exec.Command(git, "config", "--file", file, "--no-includes", "--name-only", "--null", "--list").Output()
		got, err := observe.GitConfig(text)
		if gitErr != nil {
			// Git refuses the file, or a setting outside of any section.
			return
		}
		if err != nil {
			t.Fatalf("git reads it: %q", text)
		}
		want := strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 })
		if !slices.Equal(want, got) {
			t.Fatalf("%q (-git +observe):\n%s", text, cmp.Diff(want, got))
		}
	})
}
