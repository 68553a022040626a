package shell_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/shell"
)

// row is one labelled command.
type row struct {
	Cmd   string `json:"cmd"`
	Class string `json:"class"`
}

func readRows(t testing.TB, name string) []row {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var rows []row
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		if len(sc.Bytes()) == 0 {
			continue
		}
		var r row
		if err := json.Unmarshal(sc.Bytes(), &r); err != nil {
			t.Fatalf("%s: %v: %s", name, err, sc.Text())
		}
		rows = append(rows, r)
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}

// The shared cases are not part of this repository: GATEHOUSE_CASES names
// their folder.
func TestSharedCorpus(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("GATEHOUSE_CASES")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "cases")
	}
	name := filepath.Join(dir, "shell.jsonl")
	if _, err := os.Stat(name); err != nil {
		t.Skipf("no shared cases: set GATEHOUSE_CASES to the folder that holds shell.jsonl (%v)", err)
	}
	judge(t, readRows(t, name))
}

// Our own cases, written apart from the implementation.
func TestOwnCorpus(t *testing.T) {
	t.Parallel()
	rows := readRows(t, filepath.Join("testdata", "corpus.jsonl"))
	if len(rows) < 400 {
		t.Errorf("%d rows, want at least 400", len(rows))
	}
	judge(t, rows)
}

// What people and agents type every day, and the same with a catch: options that
// write, run, send or show, abbreviated, in variables, in other programs.
func TestEverydayCorpus(t *testing.T) {
	t.Parallel()
	rows := readRows(t, filepath.Join("testdata", "everyday.jsonl"))
	count := map[string]int{}
	for _, r := range rows {
		count[r.Class]++
	}
	for class, least := range map[string]int{"safe": 150, "bypass": 300} {
		if count[class] < least {
			t.Errorf("%d %s rows, want at least %d", count[class], class, least)
		}
	}
	judge(t, rows)
}

// Rows of the same kinds from what agents run, by tool: two hundred and more of
// the safe and the destructive ones, and of ways around. Where the tables were
// wrong about one it is why they changed.
func TestFurtherCorpus(t *testing.T) {
	t.Parallel()
	rows := readRows(t, filepath.Join("testdata", "more.jsonl"))
	count := map[string]int{}
	for _, r := range rows {
		count[r.Class]++
	}
	for class, least := range map[string]int{"safe": 200, "destructive": 200, "bypass": 200, "mutating": 100, "network": 100} {
		if count[class] < least {
			t.Errorf("%d rows are %s, want at least %d", count[class], class, least)
		}
	}
	judge(t, rows)
}

// judge holds the rules of the issue: nothing harmful is safe, harmless
// commands mostly are, destruction is mostly seen and rarely imagined.
func judge(t *testing.T, rows []row) {
	t.Helper()
	count, hit := map[string]int{}, map[string]int{}
	gentle, alarms := 0, 0
	for _, r := range rows {
		a := shell.Analyze(r.Cmd, shell.Options{})
		got := a.Class
		count[r.Class]++
		if got.String() == r.Class {
			hit[r.Class]++
		} else if r.Class == "safe" || r.Class == "destructive" {
			t.Logf("%s called %s: %q\n%s", r.Class, got, r.Cmd, explain(a))
		}
		if r.Class != "safe" && got == shell.ClassSafe {
			t.Errorf("%s row called safe: %q", r.Class, r.Cmd)
		}
		if r.Class == "safe" || r.Class == "mutating" || r.Class == "network" {
			gentle++
			if got == shell.ClassDestructive {
				alarms++
				t.Logf("%s called destructive: %q\n%s", r.Class, r.Cmd, explain(a))
			}
		}
	}
	t.Logf("rows %v, same class %v, false alarms %d of %d", count, hit, alarms, gentle)
	if hit["safe"]*100 < 95*count["safe"] {
		t.Errorf("%d of %d safe rows are safe, want 95 %%", hit["safe"], count["safe"])
	}
	if hit["destructive"]*100 < 90*count["destructive"] {
		t.Errorf("%d of %d destructive rows are destructive, want 90 %%", hit["destructive"], count["destructive"])
	}
	if alarms*100 > 5*gentle {
		t.Errorf("%d of %d gentle rows called destructive, want at most 5 %%", alarms, gentle)
	}
}
