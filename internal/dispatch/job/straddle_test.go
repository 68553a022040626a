package job_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/job"
)

// The secrets of the tests, put together so that no file of this tree has one:
// a key whose length counts, and one that is told by what stands before it.
var (
	awsKey   = "AKIA" + "Q7RT5WXYZ2MNB4KL"
	bearer   = "Zm9vYmFyYmF6cXV4" + "MTIzNDU2Nzg5MGFiY2RlZg"
	straddle = []struct {
		name, before, secret string
		toEnd                bool // it counts as one to the end of the line
	}{
		{"by its length", "key ", awsKey, false},
		{"by what is before it", "password=", bearer, false},
		{"a header", "Authorization: Bearer ", bearer, true},
	}
)

// shows says how much of a secret a text shows at once.
func shows(text, secret string) int {
	for n := len(secret); n > 0; n-- {
		for at := 0; at+n <= len(secret); at++ {
			if strings.Contains(text, secret[at:at+n]) {
				return n
			}
		}
	}
	return 0
}

// few is how many characters of a secret may occur by chance.
const few = 5

// TestAttackSecretInTwoWrites: output comes in pieces, and a piece may end
// within a secret. No page shows a part of it, whether it is read while the
// process runs or afterwards, nor does the result or the progress.
func TestAttackSecretInTwoWrites(t *testing.T) {
	t.Parallel()
	for _, c := range straddle {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			both(t, func(t *testing.T, h *house) {
				for _, at := range []int{1, 4, 8, len(c.secret) - 1} {
					for _, end := range []string{`\n`, ``} {
						s := script(t, fmt.Sprintf(`printf '%s%s'; touch $D/half; until [ -e $D/go ]; do sleep 0.01; done; printf '%s%s'; printf 'x%s' >&2; printf '%s' >&2`,
							c.before, c.secret[:at], c.secret[at:], end, c.before+c.secret[:at], c.secret[at:]))
						s.Parse = func(out []byte) any { return string(out) }
						b := h.start(s)
						dir := strings.TrimPrefix(s.Env[1], "D=")
						for _, err := os.Stat(filepath.Join(dir, "half")); err != nil; _, err = os.Stat(filepath.Join(dir, "half")) {
						}
						half, _ := h.text(b.ID)
						if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
							t.Fatal(err)
						}
						b = h.await(b.ID)
						out, errs := h.text(b.ID)
						list, err := h.Progress(t.Context(), owner, b.ID, 0)
						if err != nil {
							t.Fatal(err)
						}
						for what, text := range map[string]string{"a page while it runs": half, "stdout": out, "stderr": errs, "the result": string(b.Result), "the progress": fmt.Sprint(list)} {
							if n := shows(text, c.secret); n > few {
								t.Errorf("cut at %d: %s shows %d characters: %q", at, what, n, text)
							}
						}
						if !strings.Contains(out, "[redacted:") || !strings.Contains(string(b.Result), "[redacted:") {
							t.Errorf("cut at %d: %q %s", at, out, b.Result)
						}
					}
				}
			})
		})
	}
}

// TestAttackSecretInLongLine: a line that is too long to wait for its end is
// written in parts. A secret at each place around the cut is taken out whole.
func TestAttackSecretInLongLine(t *testing.T) {
	if testing.Short() {
		t.Skip("lines of several megabytes, which a short run leaves out")
	}
	t.Parallel()
	for _, c := range straddle {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			onSQLite(t, func(*job.Options) {}, func(t *testing.T, h *house) {
				const most = 4 << 20
				for _, at := range []int{0, 1, 7, len(c.secret) - 1, len(c.secret)} {
					fill := strings.Repeat("word ", most/5)
					line := fill[:most-len(c.before)-at] + " " + c.before + c.secret + " " + fill[:200<<10] + "end\n"
					b := h.over(script(t, "", func(s *job.Spec) {
						s.Args = []string{"-c", "cat"}
						s.Drive = func(_ context.Context, in io.WriteCloser, out io.Reader, log io.Writer) error {
							// The pieces are the attacker's: one ends where the line is cut.
							for rest := []byte(line); len(rest) > 0; {
								n := min(len(rest), 32<<10)
								if done := len(line) - len(rest); done < most+1 && done+n > most+1 {
									n = most + 1 - done
								}
								if _, err := log.Write(rest[:n]); err != nil {
									return err
								}
								rest = rest[n:]
							}
							return in.Close()
						}
					}))
					p, err := h.Result(t.Context(), owner, b.ID, 0, 16<<20)
					if err != nil {
						t.Fatal(err)
					}
					if n := shows(p.Stdout.Text, c.secret); n > few {
						t.Errorf("at %d: %d characters are shown", at, n)
					}
					if c.toEnd {
						if !strings.HasSuffix(p.Stdout.Text, "[redacted:header:1]\n") {
							t.Errorf("at %d: %q", at, p.Stdout.Text[max(0, len(p.Stdout.Text)-100):])
						}
						continue
					}
					if !strings.HasSuffix(p.Stdout.Text, "end\n") || !strings.Contains(p.Stdout.Text, "[redacted:") {
						t.Errorf("at %d: the rest of the line is gone, or nothing was taken out", at)
					}
				}
			})
		})
	}
}
