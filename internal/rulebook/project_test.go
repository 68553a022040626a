package rulebook_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/rulebook"
)

func TestProjectTightensUntrusted(t *testing.T) {
	t.Parallel()
	l, b := started(t, mine)
	l.write(l.project("a"), strict)
	l.inProject(b, "a", 10)
	l.inProject(b, "a/deep/down", 10) // a directory need not exist
	l.inProject(b, "b", 30)
	l.inForce(b, 30) // only its own calls
}

func TestProjectLoosensWhenTrusted(t *testing.T) {
	t.Parallel()
	l, b := started(t, mine)
	file := l.project("a")
	l.write(file, loose)
	l.inProject(b, "a", 30)
	l.trust(b, file)
	l.inProject(b, "a", 100)
	again := l.open()
	l.inProject(again, "a", 100)

	// Trust is in one text: another one tightens and nothing else.
	l.write(file, strings.Replace(loose, "100", "200", 1))
	l.inProject(b, "a", 30)
	l.inProject(again, "a", 30)
	l.write(file, loose) // and the trusted one is still trusted
	l.inProject(b, "a", 100)
}

func TestTrustedProjectLoosensOnlyWhatIsAdjustable(t *testing.T) {
	t.Parallel()
	l, b := started(t, middle) // nothing is adjustable
	l.write(l.project("a"), loose)
	l.trust(b, l.project("a"))
	l.inProject(b, "a", 30)
}

func TestProjectTakenAway(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		gone func(l *library, file string)
	}{
		{"deleted", func(l *library, file string) { l.remove(file) }},
		{"deleted with the project", func(l *library, file string) {
			if err := os.RemoveAll(filepath.Dir(file)); err != nil {
				l.t.Fatal(err)
			}
		}},
		{"emptied", func(l *library, file string) { l.write(file, "version = 1\n") }},
		{"spoilt", func(l *library, file string) { l.write(file, broken) }},
		{"a directory instead", func(l *library, file string) {
			l.remove(file)
			if err := os.Mkdir(file, 0o755); err != nil {
				l.t.Fatal(err)
			}
		}},
		{"a dangling link instead", func(l *library, file string) {
			l.remove(file)
			if err := os.Symlink("nowhere", file); err != nil {
				l.t.Fatal(err)
			}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l, b := started(t, mine)
			file := l.project("a")
			l.write(file, strict)
			l.inProject(b, "a", 10)
			tt.gone(l, file)
			for _, b := range []*rulebook.Book{b, l.open()} {
				l.inProject(b, "a", 10)
				if got := strings.Join(b.Status().Broken, "\n"); !strings.Contains(got, file) {
					t.Errorf("the status does not name the file: %q", got)
				}
			}
			l.inProject(b, "b", 30)
		})
	}
}

// TestApproverLetsGoOfProject: taking a project's file away is a change that
// an approver accepts like any other.
func TestApproverLetsGoOfProject(t *testing.T) {
	t.Parallel()
	l, b := started(t, mine)
	l.write(l.project("a"), strict)
	l.inProject(b, "a", 10)
	l.remove(l.project("a"))
	l.trust(b, l.project("a"))
	l.inProject(b, "a", 30)
	l.inProject(l.open(), "a", 30)
}

// TestNestedProjects: the files of all projects around a directory count, the
// strictest of them; whoever can write in a project could else take away what
// its policy says with a looser file further down.
func TestNestedProjects(t *testing.T) {
	t.Parallel()
	l, b := started(t, mine)
	l.write(l.project("a"), strict)
	l.write(l.project("a/b"), strings.Replace(strict, "10", "5", 1))
	l.write(l.project("a/looser"), strings.Replace(strict, "10", "20", 1))
	for _, b := range []*rulebook.Book{b, b, l.open()} {
		l.inProject(b, "a/b/c", 5)
		l.inProject(b, "a/b", 5)
		l.inProject(b, "a", 10)
		l.inProject(b, "a/looser", 10)
		l.inProject(b, "a/bc", 10) // b is not above bc
		l.inProject(b, "ab", 30)
	}
	l.remove(l.project("a/b"))
	l.inProject(b, "a/b/c", 5)
}

// TestProjectThatNeverLoaded: nobody knows what the file was to forbid, so
// everything is.
func TestProjectThatNeverLoaded(t *testing.T) {
	t.Parallel()
	l, b := started(t, mine)
	l.write(l.project("a"), broken)
	l.inProject(b, "a", 0)
	l.inProject(b, "a/b", 0)
	l.inProject(b, "b", 30)
	if got := strings.Join(b.Status().Broken, "\n"); !strings.Contains(got, l.project("a")+":3:") {
		t.Errorf("the status does not say where: %q", got)
	}
	l.write(l.project("a"), strict)
	l.inProject(b, "a", 10)
	if got := b.Status().Broken; len(got) > 0 {
		t.Errorf("mended, and still reported: %q", got)
	}
}

// TestProjectFollowsThePolicyOutside: a project's file is judged on top of the
// machine's and the user's, whenever those change.
func TestProjectFollowsThePolicyOutside(t *testing.T) {
	t.Parallel()
	l, b := started(t, mine)
	l.write(l.project("a"), "version = 1\n[limits]\nasks_per_hour = 20\n")
	l.inProject(b, "a", 20)
	l.write(l.user, strict)
	l.reload(b)
	l.inProject(b, "a", 10)
}

// TestProjectOnAnotherNode: what a node saw of a project another one knows,
// also where the file is not on its disk.
func TestProjectOnAnotherNode(t *testing.T) {
	t.Parallel()
	l, first := started(t, mine)
	second := l.open()
	l.write(l.project("a"), strict)
	l.inProject(first, "a", 10)
	l.remove(l.project("a"))
	l.adopted(second)
	l.inProject(second, "a", 10)
}

func TestNoProject(t *testing.T) {
	t.Parallel()
	l, b := started(t, mine)
	for _, dir := range []string{"", ".", "relative/dir", "/"} {
		snap, head := b.For(&call.Call{Dir: dir})
		if snap != b.Current() || head != l.head() {
			t.Errorf("%q: another policy than the one in force", dir)
		}
	}
}

// TestTrustIsInOnePlace: what was trusted in one project loosens nothing in
// another that has the same text; an agent could have copied it there.
func TestTrustIsInOnePlace(t *testing.T) {
	t.Parallel()
	l, b := started(t, mine)
	for _, name := range []string{"a", "b"} {
		l.write(l.project(name), loose)
	}
	l.trust(b, l.project("a"))
	for _, b := range []*rulebook.Book{b, l.open()} {
		l.inProject(b, "a", 100)
		l.inProject(b, "b", 30)
	}
	l.trust(b, l.project("b"))
	l.inProject(b, "b", 100)
}

// TestProjectsAreBounded: an agent that makes projects without end fills
// neither memory nor store, and does not wash off what an earlier one said.
// What there is no room for denies.
func TestProjectsAreBounded(t *testing.T) {
	t.Parallel()
	l, b := started(t, mine)
	l.write(l.project("first"), strict)
	l.inProject(b, "first", 10)
	big := strict + strings.Repeat("# "+strings.Repeat("x", 1000)+"\n", 1000) // about a megabyte
	denied := ""
	for n := range 20 {
		name := fmt.Sprintf("p%d", n)
		l.write(l.project(name), big)
		if snap, _ := b.For(&call.Call{Dir: filepath.Dir(l.project(name))}); snap == nil {
			denied = l.project(name)
			break
		}
	}
	if denied == "" {
		t.Fatal("20 MB of policies were kept")
	}
	if got := strings.Join(b.Status().Broken, "\n"); !strings.Contains(got, denied) || !strings.Contains(got, "too many projects") {
		t.Errorf("the status says %q", got)
	}
	l.remove(l.project("first"))
	l.inProject(b, "first", 10)
	// Whoever looks after them makes room.
	l.remove(l.project("p0"))
	l.trust(b, l.project("p0"))
	if snap, _ := b.For(&call.Call{Dir: filepath.Dir(denied)}); snap == nil {
		t.Error("no room after one was forgotten")
	}
}
