package e2e_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
	"github.com/seed-3ebc6b8a/gatehouse/internal/needtest"
	"github.com/seed-3ebc6b8a/gatehouse/test/gatetest"
)

// syscallLine is one system call of a trace, from its line of begin to its
// line of end.
type syscallLine struct {
	name       string
	text       string // arguments and result
	begin, end int
}

var (
	traceWhole   = regexp.MustCompile(`^(\d+) +([a-z0-9_]+)\((.*)$`)
	traceResumed = regexp.MustCompile(`^(\d+) +<\.\.\. ([a-z0-9_]+) resumed>(.*)$`)
)

// readTrace puts the halves of interrupted calls together.
func readTrace(t testing.TB, path string) (out []syscallLine) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	open := map[string]*syscallLine{} // by thread
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for n := 0; lines.Scan(); n++ {
		line := lines.Text()
		if m := traceResumed.FindStringSubmatch(line); m != nil {
			if c := open[m[1]]; c != nil && c.name == m[2] {
				c.text, c.end = c.text+m[3], n
				out = append(out, *c)
				delete(open, m[1])
			}
			continue
		}
		m := traceWhole.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		c := syscallLine{name: m[2], text: m[3], begin: n, end: n}
		if strings.HasSuffix(line, "<unfinished ...>") {
			open[m[1]] = &c
			continue
		}
		out = append(out, c)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestNoAnswerBeforeItsSync looks at the system calls of the daemon: between
// the write of a call's record into the store and the answer on the socket
// lies a completed sync of the file that it was written to.
func TestNoAnswerBeforeItsSync(t *testing.T) {
	t.Parallel()
	strace := needtest.OneOf(t, "strace")
	if out, err := exec.Command(strace, "-f", "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		t.Skipf("strace may not trace here: %v %s", err, out)
	}
	g := gatetest.New(t)
	trace := filepath.Join(t.TempDir(), "trace")
	// The tracer is the grandchild, so that the daemon is ours to end.
	g.Wrap = []string{strace, "-D", "-f", "-y", "-s", "1000000", "-o", trace, "-e", "trace=fdatasync,fsync,sync_file_range,write,sendto,sendmsg,writev,pwrite64,pwritev"}
	g.Up()
	w := people(t, g)

	answers := map[string]string{} // what the answer holds → the call
	for n := range 10 {
		got := w.want(gate.Allowed, memo(n))
		answers[`\"call_id\":\"`+got.CallID+`\"`] = got.CallID
		w.done(got)
		asked := w.want(gate.Pending, remove(fmt.Sprintf("thing%d", n%3)))
		answers[`\"call_id\":\"`+asked.CallID+`\"`] = asked.CallID
	}
	w.Stop()
	calls := readTrace(t, trace)
	for text, id := range answers {
		checkSynced(t, calls, text, id)
	}
}

// checkSynced finds the answer, the last write of the call's id into the store
// before it, and a sync of the same file in between.
func checkSynced(t *testing.T, trace []syscallLine, answer, id string) {
	t.Helper()
	said := -1
	for i, c := range trace {
		if strings.Contains(c.text, "HTTP/1.1 200") && strings.Contains(c.text, answer) {
			said = i
		}
	}
	if said < 0 {
		t.Errorf("the answer for %s is not in the trace", id)
		return
	}
	written, file := -1, ""
	for i, c := range trace {
		if strings.HasPrefix(c.name, "pwrite") && strings.Contains(c.text, id) && c.begin < trace[said].begin {
			written, file = i, fileOf(c.text)
		}
	}
	if written < 0 {
		t.Errorf("the answer for %s came before anything of it was written", id)
		return
	}
	for _, c := range trace {
		if strings.HasSuffix(c.name, "sync") && fileOf(c.text) == file && strings.HasSuffix(c.text, "= 0") &&
			c.begin > trace[written].end && c.end < trace[said].begin {
			return
		}
	}
	t.Errorf("the answer for %s came without a sync of %s after its record was written", id, filepath.Base(file))
}

// fileOf is the file behind the descriptor that a call begins with.
func fileOf(text string) string {
	_, after, _ := strings.Cut(text, "<")
	name, _, _ := strings.Cut(after, ">")
	return name
}
