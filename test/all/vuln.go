package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// vulnDB is the module with the records of the Go vulnerability database,
	// at a version, so that the scan works where only the module proxy can be
	// reached and says the same thing twice. A newer version is a commit of its
	// own; GATEHOUSE_VULNDB names another database for one run.
	vulnDB = "golang.org/x/vulndb@v0.0.0-20260813214354-9de686e1fb00"
	// knownBad is a module with vulnerabilities. A scan that does not find
	// them has no database worth the name: govulncheck reads an empty one
	// without complaint and reports that all is well.
	knownBad = "test/vuln/testdata/knownbad"
)

// vulnerabilities scans the known-bad module and, once that is found out, this
// one.
func vulnerabilities(ctx context.Context, w *work) outcome {
	db, said := vulnDatabase(ctx)
	tool := []string{w.toolNamed("govulncheck")}
	if db != "" {
		tool = append(tool, "-db", db)
	}
	found, err := knownBadFindings(ctx, filepath.Join(w.root, filepath.FromSlash(knownBad)), tool)
	if err != nil {
		reason := fmt.Sprintf("no vulnerability database: %s; scanning the known-bad module: %v", said, err)
		return outcome{skipped: "no vulnerability database", missing: map[string]string{"vulnerability database": reason}}
	}
	if found == 0 {
		return verdict(errors.New("the scan does not find the vulnerabilities of "+knownBad+", so it would find none here"), said+"\n")
	}
	o := check(ctx, command{dir: w.root, args: append(tool, "./...")})
	o.note = fmt.Sprintf("%s; %d found in the known-bad module", said, found)
	if o.failed {
		o.detail = o.note + "\n" + o.detail
	}
	return o
}

// vulnDatabase returns the address of the database to scan with and says in
// words what it is. An empty address is the public database online.
func vulnDatabase(ctx context.Context) (address, said string) {
	if db := os.Getenv("GATEHOUSE_VULNDB"); db != "" {
		return db, "database " + db
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	// Outside the module, so that go.mod has no say and stays as it is.
	text, err := output(ctx, os.TempDir(), "go", "mod", "download", "-json", vulnDB)
	if err != nil {
		return "", fmt.Sprintf("public database online (the pinned one could not be downloaded: %s)", firstLine(err.Error()))
	}
	var module struct{ Dir string }
	if err := json.Unmarshal([]byte(text), &module); err != nil {
		return "", fmt.Sprintf("public database online (%v)", err)
	}
	dir := filepath.Join(module.Dir, "data", "osv")
	records, err := filepath.Glob(filepath.Join(dir, "GO-*.json"))
	if err != nil || len(records) == 0 {
		return "", "public database online (the pinned one has no records)"
	}
	return "file://" + filepath.ToSlash(dir), fmt.Sprintf("database of %s, %d records", dayOf(vulnDB), len(records))
}

// dayOf returns the day that a pseudo-version names. The records themselves
// carry no date.
func dayOf(version string) string {
	parts := strings.Split(version, "-")
	day, err := time.Parse("20060102150405", parts[len(parts)-2])
	if err != nil {
		return version
	}
	return day.Format(time.DateOnly)
}

// knownBadFindings counts the vulnerable functions that the known-bad module
// calls, as the scan sees it.
func knownBadFindings(ctx context.Context, dir string, tool []string) (int, error) {
	var out, errs bytes.Buffer
	c := command{dir: dir, args: append(tool[:len(tool):len(tool)], "-format", "json", "./..."), out: &out, err: &errs}
	if err := c.run(ctx); err != nil {
		return 0, fmt.Errorf("%w: %s", err, strings.TrimSpace(errs.String()))
	}
	return countFindings(&out)
}

// countFindings counts the records that name a called function in the output
// of govulncheck -format json.
func countFindings(r io.Reader) (int, error) {
	found := map[string]bool{}
	for messages := json.NewDecoder(r); ; {
		var m struct {
			Finding *struct {
				OSV   string `json:"osv"`
				Trace []struct {
					Function string `json:"function"`
				} `json:"trace"`
			} `json:"finding"`
		}
		if err := messages.Decode(&m); errors.Is(err, io.EOF) {
			return len(found), nil
		} else if err != nil {
			return 0, err
		}
		if f := m.Finding; f != nil && len(f.Trace) > 0 && f.Trace[0].Function != "" {
			found[f.OSV] = true
		}
	}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
